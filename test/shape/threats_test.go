package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown is the name of a test in docs/security.md.
var shown = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")

func TestTheThreatModelNamesTestsThatExistAndEachPolicy(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, name := range shown.FindAllStringSubmatch(string(text), -1) {
		missing[name[1]] = true
	}
	if len(missing) < 40 {
		t.Fatalf("the page names %d tests", len(missing))
	}
	for _, folder := range []string{"api", "cmd", "internal", "scheduler", "test"} {
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
		t.Errorf("docs/security.md names the test %s, which does not exist", name)
	}

	policies, err := filepath.Glob(filepath.Join(root, "charts", "berth", "admission", "*.yaml"))
	if err != nil || len(policies) < 10 {
		t.Fatalf("there are %d admission policies, %v", len(policies), err)
	}
	for _, path := range policies {
		if name := strings.TrimSuffix(filepath.Base(path), ".yaml"); !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/security.md does not say what the admission policy %s is for", name)
		}
	}
}
