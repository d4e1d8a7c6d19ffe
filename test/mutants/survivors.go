package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// survivors are the changes that may survive, and the reasons.
type survivors map[string]string

// readSurvivors reads the list: each entry is the name of a change and, indented below
// it, the reason. Lines that begin with # are for people.
func readSurvivors(path string) (survivors, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list := survivors{}
	var last string
	for n, line := range strings.Split(string(text), "\n") {
		reason, indented := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case indented && last == "":
			return nil, fmt.Errorf("%s:%d: a reason for nothing", path, n+1)
		case indented:
			list[last] = strings.TrimSpace(list[last] + " " + reason)
		default:
			if _, twice := list[line]; twice {
				return nil, fmt.Errorf("%s:%d: the second entry of that name", path, n+1)
			}
			last, list[line] = line, ""
		}
	}
	for key, reason := range list {
		if reason == "" {
			return nil, fmt.Errorf("%s: no reason is given for %s", path, key)
		}
	}
	return list, nil
}

// compare returns the survivors that are not in the list, and the entries of a package that
// are out of date: a test catches the change, or there is no such change.
func (s survivors) compare(dir string, all, tried, lived []*mutant) (unknown []*mutant, stale []string) {
	named := func(list []*mutant) map[string]bool {
		keys := map[string]bool{}
		for _, m := range list {
			keys[m.key()] = true
		}
		return keys
	}
	exists, wasTried, lives := named(all), named(tried), named(lived)
	for _, m := range lived {
		if s[m.key()] == "" {
			unknown = append(unknown, m)
		}
	}
	for key := range s {
		if strings.HasPrefix(key, dir+" ") && (!exists[key] || wasTried[key] && !lives[key]) {
			stale = append(stale, key)
		}
	}
	slices.Sort(stale)
	slices.SortFunc(unknown, func(a, b *mutant) int { return a.number - b.number })
	return unknown, stale
}
