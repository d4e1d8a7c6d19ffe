package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// file is one Go file that ships.
type file struct {
	// path of the file, and folder of its package, from the root of the repository.
	path, folder string
	lines        int
	fset         *token.FileSet
	tree         *ast.File
}

// module is a Go module of the repository, and the programs of it that ship.
type module struct {
	dir      string
	programs []string
}

// prefix begins the import path of every package of the repository.
const prefix = "berth.dev/berth/"

// load parses the files of the programs and of every package of the repository that they
// contain. It leaves out generated files.
func (m module) load(ctx context.Context) ([]file, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the repository: %w", err)
	}
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-json=Dir,ImportPath,GoFiles"}, m.programs...)...)
	list.Dir, list.Stderr = m.dir, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of module %s: %w", m.dir, err)
	}
	var files []file
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir, ImportPath string
			GoFiles         []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return files, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go list: %w", err)
		}
		if !strings.HasPrefix(p.ImportPath+"/", prefix) {
			continue
		}
		for _, name := range p.GoFiles {
			f, err := parse(root, filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			if !ast.IsGenerated(f.tree) {
				files = append(files, f)
			}
		}
	}
}

func parse(root, path string) (file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return file{}, fmt.Errorf("reading a source file: %w", err)
	}
	within, err := filepath.Rel(root, path)
	if err != nil {
		return file{}, fmt.Errorf("finding %s in the repository: %w", path, err)
	}
	return parseText(within, text)
}

func parseText(path string, text []byte) (file, error) {
	f := file{path: path, folder: filepath.Dir(path), lines: bytes.Count(text, []byte("\n")), fset: token.NewFileSet()}
	tree, err := parser.ParseFile(f.fset, path, text, parser.ParseComments)
	if err != nil {
		return file{}, fmt.Errorf("parsing a source file: %w", err)
	}
	f.tree = tree
	return f, nil
}
