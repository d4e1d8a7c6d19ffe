package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"berth.dev/berth/test/cluster"
)

func main() {
	var o options
	flag.IntVar(&o.runs, "n", 20, "claims and pods made one after the other")
	flag.IntVar(&o.burst, "burst", 20, "claims and pods made at once")
	flag.BoolVar(&o.native, "native", false, "on a native node of the lab with simulated LVM, which is made for it and taken down")
	flag.StringVar(&o.dir, "out", filepath.Join("docs", "benchmarks"), "where the results go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Minute)
	defer cancel()
	do := run
	if o.native {
		do = runNative
	}
	if err := do(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-provision:", err)
		os.Exit(1)
	}
}

// options are the options of the command line.
type options struct {
	runs, burst int
	native      bool
	dir         string
}

func run(ctx context.Context, o options) error {
	c, err := cluster.Connect(ctx)
	if err != nil {
		return err
	}
	var r results
	for _, measure := range []struct {
		name string
		do   func(context.Context, *cluster.Cluster, options) error
	}{
		{"versions", r.look},
		{"processes and requests of one volume's life", r.countLife},
		{"claims and pods one after the other", r.sequence},
		{"claims and pods at once", r.bursts},
		{"bare commands", r.bareCommands},
		{"an API server with simulated nodes", r.simulate},
	} {
		fmt.Fprintf(os.Stderr, "==> %s\n", measure.name)
		if err := measure.do(ctx, c, o); err != nil {
			return fmt.Errorf("%s: %w", measure.name, err)
		}
	}
	return r.write(o)
}
