package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// helpers is the code beside the changed code. A change is active if its number is in the
// environment. The code records the changes that it reaches in a file, if one is named. It
// allocates no memory for each check, because tests count allocations.
const helpers = `package %s

import (
	mutantos "os"
	mutantstrconv "strconv"
	mutantatomic "sync/atomic"
%s)

var (
	mutantNow, _    = mutantstrconv.Atoi(mutantos.Getenv("BERTH_MUTANT"))
	mutantNotes, _  = mutantos.OpenFile(mutantos.Getenv("BERTH_MUTANTS_REACHED"), mutantos.O_APPEND|mutantos.O_WRONLY, 0)
	mutantsNoted    [%d]mutantatomic.Bool
)

func mutantOn(n int) bool {
	if mutantNotes != nil {
		if mutantsNoted[n].CompareAndSwap(false, true) {
			_, _ = mutantNotes.WriteString(mutantstrconv.Itoa(n) + "\n")
		}
	}
	return n == mutantNow
}

func mutantErr(n int, do func() error) error {
	if mutantOn(n) {
		return nil
	}
	return do()
}

func mutantLock(n int, do func() (func(), error)) (func(), error) {
	if mutantOn(n) {
		return func() {}, nil
	}
	return do()
}

func mutantHolds[T any](n int, always bool, holds func(T) bool) func(T) bool {
	return func(v T) bool {
		if mutantOn(n) {
			return always
		}
		return holds(v)
	}
}

func mutantZero[T any](n int, v T) T {
	if mutantOn(n) {
		var zero T
		return zero
	}
	return v
}
`

const readerHelper = `
func mutantReader(n int, live, cached mutantclient.Reader) mutantclient.Reader {
	if mutantOn(n) {
		return cached
	}
	return live
}
`

// build compiles the tests of a package with all its changes.
func build(ctx context.Context, c *code, all []*mutant) (*tests, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	t := &tests{code: c, dir: dir}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	put := func(place, name string, text []byte) error {
		overlay.Replace[place] = filepath.Join(dir, name)
		return os.WriteFile(filepath.Join(dir, name), text, 0o600)
	}
	imports, more := "", ""
	for _, m := range all {
		if m.kind == "cached" {
			imports, more = "\tmutantclient \""+clientPackage+"\"\n", readerHelper
		}
	}
	err = put(filepath.Join(c.root, c.target.dir, "zz_mutants.go"), "zz_mutants.go", []byte(fmt.Sprintf(helpers, c.name, imports, len(all)+1)+more))
	for _, s := range c.files {
		if err == nil {
			err = put(s.path, base(s.path), s.mutated(all))
		}
	}
	file, marshalErr := json.Marshal(overlay)
	if err == nil && marshalErr == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), file, 0o600)
	}
	for i, tested := range append([]string{c.target.dir}, c.with...) {
		if err != nil {
			break
		}
		suite := suite{dir: filepath.Join(c.root, tested), binary: filepath.Join(dir, fmt.Sprintf("tests-%d", i))}
		suite.flags, err = flagsOf(ctx, tested)
		if err == nil {
			_, err = output(ctx, "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", suite.binary, "./"+tested)
		}
		t.suites = append(t.suites, suite)
	}
	if err != nil {
		t.remove()
		return nil, fmt.Errorf("building the tests with the changes in: %w", err)
	}
	return t, nil
}

// flagsOf returns flags that make the tests of a package short, and keep them from writing to the tree. rapid
// would record a failed example and begin with it the next time, although the code is correct.
func flagsOf(ctx context.Context, tested string) ([]string, error) {
	flags := []string{"-test.short"}
	used, err := output(ctx, "go", "list", "-test", "-deps", "./"+tested)
	if slices.Contains(strings.Fields(string(used)), "pgregory.net/rapid") {
		flags = append(flags, "-rapid.nofailfile")
	}
	return flags, err
}

func (t *tests) remove() { os.RemoveAll(t.dir) }

// numbers returns the changes that a run has reached.
func numbers(text string) map[string]bool {
	reached := map[string]bool{}
	for n := range strings.FieldsSeq(text) {
		reached[n] = true
	}
	return reached
}
