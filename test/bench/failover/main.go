// Command failover makes docs/benchmarks/failover.md of the rounds that make bench-failover has played.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"berth.dev/berth/test/rounds"
)

func main() {
	dir := flag.String("dir", filepath.Join("docs", "benchmarks"), "where the rounds are, and where the page goes")
	flag.Parse()
	if err := render(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench-failover:", err)
		os.Exit(1)
	}
}

func render(dir string) (err error) {
	lines, err := os.Open(filepath.Join(dir, "failover.jsonl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	all, err := rounds.Read(lines)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	rounds.Page(&page, all)
	return os.WriteFile(filepath.Join(dir, "failover.md"), page.Bytes(), 0o644) //nolint:gosec // a page for everyone
}
