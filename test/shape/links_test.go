package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// link is a link to a file of the repository or to a heading; lines may be wrapped within its text.
var link = regexp.MustCompile(`\]\(([^)\s:]+)\)`)

// anchors returns what the headings of a document are called in links.
func anchors(text string) map[string]bool {
	found, code := map[string]bool{}, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		title := strings.TrimLeft(line, "#")
		if code || title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		found[strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, strings.TrimSpace(title))] = true
	}
	return found
}

func TestEachLinkOfADocumentLeadsToAFileOrAHeading(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "charts/*/*.md", "lab/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, more...)
	}
	followed := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			followed++
			to, anchor, _ := strings.Cut(found[1], "#")
			target := path
			if to != "" {
				target = filepath.Join(filepath.Dir(path), to)
			}
			if info, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link to %s leads nowhere: %v", path, found[1], err)
				continue
			} else if anchor == "" || info.IsDir() {
				continue
			}
			there, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if !anchors(string(there))[anchor] {
				t.Errorf("%s: %s has no heading for %s", path, filepath.Base(target), found[1])
			}
		}
	}
	if followed < 100 {
		t.Errorf("only %d links were found", followed)
	}
}
