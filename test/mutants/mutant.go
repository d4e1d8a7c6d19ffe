package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// mutant is one change. Its key must not depend on line numbers: otherwise each edit of the
// code would make the list of survivors out of date.
type mutant struct {
	number           int
	dir, in          string // package and function
	kind, text       string
	nth              int // among equal changes in the function
	file             string
	line             int
	source           *source
	from, to         int // in the source's text
	opening, closing string
}

func (m *mutant) key() string {
	key := fmt.Sprintf("%s %s: %s `%s`", m.dir, m.in, m.kind, m.text)
	if m.nth > 1 {
		key += fmt.Sprintf(" (%d)", m.nth)
	}
	return key
}

// add records a change of a node: the code of the node goes between the two texts, in which %d
// is the number of the change.
func (f *finder) add(kind string, n ast.Node, opening, closing string) {
	from, to := f.fset.Position(n.Pos()), f.fset.Position(n.End())
	m := &mutant{
		number: len(f.found) + 1, dir: f.dir, in: f.in, kind: kind, nth: 1, file: f.dir + "/" + base(from.Filename), line: from.Line,
		source: f.source, from: from.Offset, to: to.Offset,
	}
	m.text = strings.Join(strings.Fields(string(f.source.text[m.from:m.to])), " ")
	if line := 100; len(m.text) > line {
		m.text = m.text[:line] + "..."
	}
	number := func(text string) string { return strings.ReplaceAll(text, "%d", fmt.Sprint(m.number)) }
	m.opening, m.closing = number(opening), number(closing)
	for _, other := range f.found {
		if other.in == m.in && other.kind == m.kind && other.text == m.text {
			m.nth++
		}
	}
	f.found = append(f.found, m)
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// mutated returns the file with all its changes, each inactive until its number is set.
func (s *source) mutated(all []*mutant) []byte {
	type insert struct {
		at, width, number int
		closes            bool
		text              string
	}
	var inserts []insert
	for _, m := range all {
		if m.source == s {
			inserts = append(inserts, insert{m.from, m.to - m.from, m.number, false, m.opening}, insert{m.to, m.to - m.from, m.number, true, m.closing})
		}
	}
	// At one place closing texts come before opening ones, and a wider change is around a
	// narrower one.
	slices.SortFunc(inserts, func(a, b insert) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.closes != b.closes && a.closes:
			return -1
		case a.closes != b.closes:
			return 1
		case a.closes:
			return cmp.Or(cmp.Compare(a.width, b.width), cmp.Compare(b.number, a.number))
		default:
			return cmp.Or(cmp.Compare(b.width, a.width), cmp.Compare(a.number, b.number))
		}
	})
	var out bytes.Buffer
	done := 0
	for _, i := range inserts {
		out.Write(s.text[done:i.at])
		out.WriteString(i.text)
		done = i.at
	}
	out.Write(s.text[done:])
	return out.Bytes()
}
