package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "module example.org/broken\n\ngo 1.26\n"

const broken = `package broken

import "errors"

var kept []string

func remove(name string, held, open bool) error {
	unlock, err := lock(name)
	if err != nil {
		return err
	}
	defer unlock()
	if held || open {
		return errors.New("in use")
	}
	kept = nil
	return nil
}

func lock(string) (func(), error) { return func() {}, nil }
`

const tests1 = `package broken

import "testing"

func TestHeldDataStays(t *testing.T) {
	kept = []string{"data"}
	if err := remove("v", true, false); err == nil || kept == nil {
		t.Error(err)
	}
	if err := remove("v", false, false); err != nil || kept != nil {
		t.Error(err)
	}
}
`

// put makes a module of one package, in which the test runs.
func put(t *testing.T) target {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"go.mod": module, "internal/broken/broken.go": broken, "internal/broken/broken_test.go": tests1} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return target{dir: "internal/broken"}
}

func TestAChangeThatNoTestNoticesSurvives(t *testing.T) {
	at := put(t)
	code, err := load(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	all := code.mutants()
	var out strings.Builder
	tests, err := build(t.Context(), code, all)
	if err != nil {
		t.Fatal(err)
	}
	defer tests.remove()
	lived, err := tests.run(t.Context(), options{jobs: 2, out: &out}, all)
	if err != nil {
		t.Fatal(err)
	}
	unknown, stale := survivors{"internal/broken remove: never `open`": "", "internal/broken gone: never `x`": "old"}.compare(at.dir, all, all, lived)
	var got []string
	for _, m := range unknown {
		got = append(got, m.key())
	}
	want := []string{
		"internal/broken remove: no lock `lock(name)`",
		"internal/broken remove: never `err != nil`",
		"internal/broken remove: left out `defer unlock()`",
		"internal/broken remove: never `open`",
	}
	less := func(list []string) map[string]bool {
		set := map[string]bool{}
		for _, s := range list {
			set[s] = true
		}
		return set
	}
	if diff := cmp.Diff(less(want), less(got)); diff != "" {
		t.Errorf("%s\n%s", diff, out.String())
	}
	if diff := cmp.Diff([]string{"internal/broken gone: never `x`"}, stale); diff != "" {
		t.Error(diff)
	}
	if out, err := exec.CommandContext(t.Context(), "ls", "internal/broken").Output(); err != nil || strings.Contains(string(out), "mutants") {
		t.Errorf("the tree was written: %s, %v", out, err)
	}
}

const tests2 = `package broken

import (
	"testing"

	"pgregory.net/rapid"
)

func TestHeldOrOpenDataStaysInEveryCase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept = []string{"data"}
		held, open := rapid.Bool().Draw(t, "held"), rapid.Bool().Draw(t, "open")
		if err := remove("v", held, open); (err == nil) == (held || open) || (kept == nil) != (err == nil) {
			t.Fatal(err)
		}
	})
}
`

func TestARandomFailureWritesNothingIntoTheTree(t *testing.T) {
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := output(t.Context(), "go", "list", "-m", "-f", "{{.Path}} {{.Version}}", "pgregory.net/rapid")
	if err != nil {
		t.Fatal(err)
	}
	at := put(t)
	for name, text := range map[string]string{
		"go.mod": module + "\nrequire " + string(wanted), "go.sum": string(sums), "internal/broken/random_test.go": tests2,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, err := load(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	all := code.mutants()
	tests, err := build(t.Context(), code, all)
	if err != nil {
		t.Fatal(err)
	}
	defer tests.remove()
	lived, err := tests.run(t.Context(), options{jobs: 2, out: &strings.Builder{}}, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range lived {
		if m.text == "open" {
			t.Errorf("%s lives: nothing failed at random", m.key())
		}
	}
	if left, err := filepath.Glob("internal/broken/testdata/*/*"); err != nil || left != nil {
		t.Errorf("the tree was written: %v, %v", left, err)
	}
}

const rules = `package broken

type rule struct{ when, then func(string) bool }

var rules = []rule{
	{when: empty, then: func(s string) bool { return held }},
	{when: long, then: empty},
}

var held = true

func refuse(s string) bool {
	for _, r := range rules {
		if r.when(s) {
			return r.then(s)
		}
	}
	return false
}

func empty(s string) bool { return s == "" }

func long(s string) bool { return len(s) > 3 }
`

const tests3 = `package broken

import "testing"

func TestWithoutANameNothingIsRemoved(t *testing.T) {
	if !refuse("") || refuse("v") {
		t.Error("refused")
	}
}
`

func TestTheRulesOfPackageVariablesAreChanged(t *testing.T) {
	at := put(t)
	for name, text := range map[string]string{"broken.go": rules, "broken_test.go": tests3} {
		if err := os.WriteFile(filepath.Join(at.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, err := load(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	all := code.mutants()
	tests, err := build(t.Context(), code, all)
	if err != nil {
		t.Fatal(err)
	}
	defer tests.remove()
	lived, err := tests.run(t.Context(), options{jobs: 2, out: &strings.Builder{}}, all)
	if err != nil {
		t.Fatal(err)
	}
	lives := map[string]bool{}
	for _, m := range lived {
		lives[m.key()] = true
	}
	got := map[string]bool{}
	for _, m := range all {
		if m.in == "rules" {
			got[m.key()] = lives[m.key()]
		}
	}
	want := map[string]bool{
		"internal/broken rules: never `empty`": false, "internal/broken rules: always `empty`": false,
		"internal/broken rules: never `held`": false, "internal/broken rules: always `held`": true,
		"internal/broken rules: never `long`": true, "internal/broken rules: always `long`": true,
		"internal/broken rules: never `empty` (2)": true, "internal/broken rules: always `empty` (2)": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("which changes live: %s", diff)
	}
}

func TestAListOfSurvivorsGivesReasons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "survivors.txt")
	for text, want := range map[string]string{
		"# a note\na f: never `x`\n\tit is never so\n\tbecause\n": "",
		"a f: never `x`\n":                      "no reason",
		"\tbecause\n":                           "a reason for nothing",
		"a f: never `x`\n\ty\na f: never `x`\n": "second entry",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := readSurvivors(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if want == "" && list["a f: never `x`"] != "it is never so because" {
			t.Errorf("read %q", list)
		}
	}
}

func TestTheTestThatCaughtAChangeIsNamed(t *testing.T) {
	for out, want := range map[string]string{
		"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\n": "TestA",
		"panic: nil map\n": "its end",
	} {
		if got := catcher([]byte(out)); got != want {
			t.Errorf("%q was caught by %q, want %q", out, got, want)
		}
	}
}
