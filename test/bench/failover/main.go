// Command failover makes docs/benchmarks/failover.md of the rounds that make bench-failover has played, or
// failover-native.md of those of make bench-failover-native.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"berth.dev/berth/test/rounds"
)

func main() {
	dir := flag.String("dir", filepath.Join("docs", "benchmarks"), "where the rounds are, and where the page goes")
	native := flag.Bool("native", false, "make the page of the rounds with real processes of one machine")
	flag.Parse()
	var err error
	if *native {
		err = renderNative(filepath.Join(*dir, "failover-native"))
	} else {
		err = renderGuests(filepath.Join(*dir, "failover"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-failover:", err)
		os.Exit(1)
	}
}

// renderNative makes the page at a path of the rounds and the counts of requests beside it.
func renderNative(path string) error {
	lines, err := os.ReadFile(path + "-requests.jsonl")
	if err != nil {
		return err
	}
	quiet, err := rounds.ReadRequests(bytes.NewReader(lines))
	if err != nil {
		return err
	}
	return render(path, func(w io.Writer, all []rounds.Round) { rounds.Native(w, all, quiet) })
}

// renderGuests makes the page at a path of the rounds, and of those that they are compared with.
func renderGuests(path string) error {
	beside, err := read(path + "-beside.jsonl")
	if err != nil {
		return err
	}
	return render(path, func(w io.Writer, all []rounds.Round) { rounds.Page(w, all, beside) })
}

// read reads a file of rounds.
func read(path string) (all []rounds.Round, err error) {
	lines, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	return rounds.Read(lines)
}

// render makes the page at a path of the rounds beside it.
func render(path string, write func(io.Writer, []rounds.Round)) error {
	all, err := read(path + ".jsonl")
	if err != nil {
		return err
	}
	var page bytes.Buffer
	write(&page, all)
	return os.WriteFile(path+".md", page.Bytes(), 0o644) //nolint:gosec // a page for everyone
}
