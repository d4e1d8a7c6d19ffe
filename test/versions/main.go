package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

// records has a file for each version that was tried, and page is made of them.
const (
	records = "docs/versions"
	page    = "docs/versions.md"
)

func run(ctx context.Context, minors []string) error {
	for _, minor := range minors {
		r, err := try(ctx, minor)
		if err != nil {
			return err
		}
		if err := write(minor, r); err != nil {
			return err
		}
	}
	all, err := read(records)
	if err != nil {
		return err
	}
	refused := map[string][]string{}
	for _, minor := range promised {
		if refused[minor], err = refuses(ctx, minor+".0"); err != nil {
			return err
		}
	}
	return os.WriteFile(page, []byte(render(all, refused)), 0o644)
}

func write(minor string, r record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(records, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(records, minor+".json"), append(text, '\n'), 0o644)
}

// read returns the records of a directory by minor version.
func read(dir string) (map[string]record, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string]record{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("reading %s: %w", f, err)
		}
		all[minorOf(r.Kubernetes)] = r
	}
	return all, nil
}
