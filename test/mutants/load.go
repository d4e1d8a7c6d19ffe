package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// code is a package as its compiler sees it.
type code struct {
	target
	path, name string
	root       string // of the repository
	fset       *token.FileSet
	files      []*source
	types      types.Info
	pkg        *types.Package
}

// source is a file to change.
type source struct {
	path string
	text []byte
	tree *ast.File
}

// listed is the description of a package by go list.
type listed struct {
	Dir, ImportPath, Name, Export string
	GoFiles                       []string
	DepOnly                       bool
}

// load reads and type-checks a package. go list compiles the packages that it imports.
func load(ctx context.Context, t target) (*code, error) {
	out, err := output(ctx, "go", "list", "-export", "-deps", "-json=Dir,ImportPath,Name,Export,GoFiles,DepOnly", "./"+t.dir)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	var own listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list says: %w", err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			own = l
		}
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	c := &code{target: t, path: own.ImportPath, name: own.Name, root: root, fset: token.NewFileSet()}
	trees, err := c.parse(own)
	if err != nil {
		return nil, err
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	c.types = types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	checker := types.Config{Importer: importer.ForCompiler(c.fset, "gc", lookup)}
	if c.pkg, err = checker.Check(c.path, c.fset, trees, &c.types); err != nil {
		return nil, fmt.Errorf("checking %s: %w", c.path, err)
	}
	return c, nil
}

// parse reads all files, and keeps those to change.
func (c *code) parse(own listed) (trees []*ast.File, err error) {
	for _, missing := range c.target.files {
		if !slices.Contains(own.GoFiles, missing) {
			return nil, fmt.Errorf("there is no file %s: correct test/mutants/targets.go", missing)
		}
	}
	for _, name := range own.GoFiles {
		path := filepath.Join(own.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(c.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
		if len(c.target.files) == 0 || slices.Contains(c.target.files, name) {
			c.files = append(c.files, &source{path, text, tree})
		}
	}
	return trees, nil
}

// output runs a program and returns its output. An error contains its standard error.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, args[0], err, complaint.Bytes())
	}
	return out, nil
}
