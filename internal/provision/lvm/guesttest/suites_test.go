package guesttest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Here are the recipes that run suites in guests.
const recipes = "../../../../hack/test.mk"

var testIn = regexp.MustCompile(`(?s)^//go:build platform\n.*\nfunc Test`)

func TestEachSuiteRunsInAGuest(t *testing.T) {
	text, err := os.ReadFile(recipes)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../*/guesttest/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %q, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		suite, _, _ := strings.Cut(filepath.Base(file), "_")
		backend := strings.ToUpper(filepath.Base(filepath.Dir(filepath.Dir(file))))
		argument := regexp.MustCompile(`\$\(` + backend + `_SUITES\)=` + suite + `(\s|$)`)
		if testIn.Match(content) && !argument.Match(text) {
			t.Errorf("no recipe runs the suite %s, with the tests in %s", suite, file)
		}
	}
}
