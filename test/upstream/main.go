package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"berth.dev/berth/test/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// results has a file for each variant, and page is made of them.
const (
	results = "docs/upstream"
	page    = "docs/upstream.md"
)

func run(ctx context.Context) error {
	procs := flag.Int("procs", 4, "specs that run at a time")
	focus := flag.String("focus", "", "regular expression: only specs with such a name, and nothing is written")
	flag.Parse()
	name := flag.Arg(0)
	v, known := variants[name]
	if !known || flag.NArg() != 1 {
		return fmt.Errorf("name one kind of pools: %s", strings.Join(slices.Sorted(maps.Keys(variants)), ", "))
	}
	c, err := cluster.Connect(ctx)
	if err != nil {
		return err
	}
	s := &suite{Cluster: c, name: name, procs: *procs, focus: *focus}
	if err := s.prepare(ctx, v); err != nil {
		return err
	}
	report, runErr := s.run(ctx)
	if report == nil {
		return runErr
	}
	r := summarize(name, report)
	r.print(os.Stdout)
	if *focus == "" {
		if err := write(r); err != nil {
			return err
		}
	}
	return runErr
}
