package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is how long a line of a document may be.
const columns = 110

// long returns the numbers of the lines that are too long. Tables and code are as long as they must be.
func long(text string) (numbers []int) {
	number, code := 0, false
	for line := range strings.Lines(text) {
		number++
		if fence := strings.HasPrefix(strings.TrimSpace(line), "```"); fence {
			code = !code
		}
		free := code || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ")
		if !free && utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > columns {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

func TestTheLinesOfADocumentAreWrapped(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("there are %d documents, %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, number := range long(string(text)) {
			t.Errorf("docs/%s:%d: more than %d columns: wrap it", filepath.Base(path), number, columns)
		}
	}
}

func TestOnlyTextIsTooLong(t *testing.T) {
	row := strings.Repeat("ä", columns)
	for text, want := range map[string]int{
		row + "\n":                              0,
		row + "a\n":                             1,
		row + "a":                               1,
		"|" + row + "\n":                        0,
		"```\n" + row + "a\n```\n":              0,
		"```\n```\n" + row + "a\n":              1,
		"    " + row + "\n":                     0,
		"- short\n  " + row + "\n" + row + "\n": 1,
	} {
		if got := long(text); len(got) != want {
			t.Errorf("%q: lines %v are too long, want %d", text, got, want)
		}
	}
}
