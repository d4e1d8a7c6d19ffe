package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// decider is a row of the table in docs/architecture.md: a folder and a function.
var decider = regexp.MustCompile("(?m)^\\| .* \\| `([a-z/]+)` `(\\w+)` \\|$")

func TestTheFunctionsThatTheArchitectureNamesExist(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := decider.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 10 {
		t.Fatalf("the table has %d rows that can be read", len(rows))
	}
	for _, row := range rows {
		paths, err := filepath.Glob(filepath.Join(root, row[1], "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var files []file
		for _, path := range paths {
			f, err := parse(root, path)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		if !names(functions(files), filepath.Clean(row[1]))[row[2]] {
			t.Errorf("%s has no function %s", row[1], row[2])
		}
	}
}
