package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// shown is the name of a test in a document.
var shown = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")

// testsExist checks that each test exists that the document names, and returns the document.
func testsExist(t *testing.T, document string) (text string, tests int) {
	t.Helper()
	read, err := os.ReadFile(filepath.Join(root, "docs", document))
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, name := range shown.FindAllStringSubmatch(string(read), -1) {
		missing[name[1]] = true
	}
	tests = len(missing)
	for _, folder := range []string{"api", "cmd", "hack", "internal", "scheduler", "test"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for name := range missing {
				if strings.Contains(string(source), "\nfunc "+name+"(") {
					delete(missing, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range missing {
		t.Errorf("docs/%s names the test %s, which does not exist", document, name)
	}
	return string(read), tests
}

func TestTheThreatModelNamesTestsThatExistAndEachPolicy(t *testing.T) {
	text, tests := testsExist(t, "security.md")
	if tests < 40 {
		t.Fatalf("the page names %d tests", tests)
	}
	policies, err := filepath.Glob(filepath.Join(root, "charts", "berth", "admission", "*.yaml"))
	if err != nil || len(policies) < 10 {
		t.Fatalf("there are %d admission policies, %v", len(policies), err)
	}
	for _, path := range policies {
		if name := strings.TrimSuffix(filepath.Base(path), ".yaml"); !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/security.md does not say what the admission policy %s is for", name)
		}
	}
}

// requirement is a row of the assessment: its identities, whether it is met, and where to look.
var requirement = regexp.MustCompile(`(?m)^\| ((?:[A-Z]{2}-\d\d\.\d\d(?:, )?)+) [^|]+\| [123, ]+ \| (\w+) \| ?([^|]*)\|$`)

func TestTheAssessmentSaysOfEachRequirementWhereToLook(t *testing.T) {
	text, _ := testsExist(t, "osps-baseline.md")
	assessed := map[string]bool{}
	for _, row := range requirement.FindAllStringSubmatch(text, -1) {
		for id := range strings.SplitSeq(row[1], ", ") {
			if assessed[id] {
				t.Errorf("%s is assessed twice", id)
			}
			assessed[id] = true
		}
		switch row[2] {
		case "met":
			if strings.TrimSpace(row[3]) == "" {
				t.Errorf("%s is met, and nothing shows it", row[1])
			}
		case "host", "missing":
		default:
			t.Errorf("%s is %q", row[1], row[2])
		}
	}
	if want := 64; len(assessed) != want { // of version 2026.02.19, without the one that is retired
		t.Errorf("%d requirements are assessed, the baseline has %d", len(assessed), want)
	}
}

func TestTheRepositoryHasTextAlone(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", ".cache"}, entry.Name()):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || strings.HasSuffix(path, ".test"): // a test that go built
			return nil
		}
		content, err := os.ReadFile(path)
		if bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) {
			t.Errorf("%s is no text: reviewers cannot read it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
