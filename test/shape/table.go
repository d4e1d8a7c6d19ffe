package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// The limits of the shape: no type should have more methods, and no function more lines.
const (
	mostMethods = 25
	mostLines   = 60
)

// report writes all figures as a table.
func report(out io.Writer, files []file) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	all := functions(files)
	size(row, files)
	shape(row, all)
	var sets []map[string]bool
	for _, engine := range []string{"lvm", "zfs", "device"} {
		sets = append(sets, names(all, filepath.Join("internal/provision", engine)))
	}
	row("function names shared by lvm and zfs", "%d", common(sets[:2]...))
	row("function names shared by lvm, zfs and device", "%d", common(sets...))
	for _, b := range backends {
		row("files outside "+b.folder+" that name it", "%d", len(b.outside(files)))
	}
	list(row, "folders that import each other", circles(files))
	list(row, "types for a decision", decisions(files))
	row("lines of comment with somebody, nobody, whoever", "%d", vagueLines(files))
	return w.Flush()
}

func size(row func(name, format string, args ...any), files []file) {
	folders, lines := map[string]bool{}, 0
	var lengths []int
	for _, f := range files {
		folders[f.folder] = true
		lines += f.lines
		lengths = append(lengths, f.lines)
	}
	slices.Sort(lengths)
	row("lines that ship", "%d", lines)
	row("packages, files", "%d, %d", len(folders), len(files))
	row("lines of a file: median, 90 %, most", "%d, %d, %d", lengths[len(lengths)/2], lengths[len(lengths)*9/10], lengths[len(lengths)-1])
}

func shape(row func(name, format string, args ...any), all []function) {
	long := 0
	for _, fn := range all {
		if fn.lines > mostLines {
			long++
		}
	}
	row(fmt.Sprintf("functions, of more than %d lines", mostLines), "%d, %d", len(all), long)
	var large []string
	for _, t := range types(all) {
		if t.methods > mostMethods {
			large = append(large, fmt.Sprintf("%s.%s: %d in %d files", strings.TrimPrefix(t.folder, "internal/"), t.name, t.methods, t.files))
		}
	}
	list(row, fmt.Sprintf("types with more than %d methods", mostMethods), large)
}

// list writes how many items there are, and each below.
func list(row func(name, format string, args ...any), name string, items []string) {
	row(name, "%d", len(items))
	for _, item := range items {
		row("", "%s", item)
	}
}
