// Command readme writes the page of each chart's values, README.md, from values.yaml: each
// value with its default and its comment. `make generate` runs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "readme: give the directories of the charts")
		os.Exit(2)
	}
	for _, chart := range os.Args[1:] {
		if err := write(chart); err != nil {
			fmt.Fprintln(os.Stderr, "readme:", err)
			os.Exit(1)
		}
	}
}

func write(chart string) error {
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return fmt.Errorf("reading the chart's values: %w", err)
	}
	head, err := heads.ReadFile(filepath.Base(chart) + ".md")
	if err != nil {
		return fmt.Errorf("a chart needs a head in hack/release/readme: %w", err)
	}
	text, err := page(string(head), values)
	if err != nil {
		return fmt.Errorf("describing the chart's values: %w", err)
	}
	return os.WriteFile(filepath.Join(chart, "README.md"), text, 0o644)
}
