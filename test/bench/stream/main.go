// Command stream measures the stream of replication beside the same work without Berth, and writes
// docs/benchmarks/stream.md and its chart.
//
// It runs the benchmarks of the packages. In each round every side is measured once, and each time another one
// first, so that other work on the machine is spread over both.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

// pair is Berth and what it is compared with: two benchmarks of one package.
type pair struct {
	name, module string
	tags         string
	// berth and bare are names of benchmarks.
	berth, bare string
	// times is how many streams one round has.
	times int
}

var pairs = []pair{
	{name: "bulk, memory to memory over loopback", module: "./internal/replicate/stream", berth: "BenchmarkStream", bare: "BenchmarkBareTLS", times: 2},
	{name: "btrfs, in full and an increment", module: "./internal/replicate/copies", tags: "platform", berth: "BenchmarkBtrfs", bare: "BenchmarkBtrfsBare", times: 1},
}

func main() {
	rounds := flag.Int("rounds", 5, "how often each side is measured")
	dir := flag.String("dir", "docs/benchmarks", "folder of the page")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench-stream:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, dir string) error {
	temporary, err := os.MkdirTemp("", "bench-stream-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	r := results{load: []string{load()}, of: map[string][2][]figures{}}
	for i, p := range pairs {
		program := filepath.Join(temporary, fmt.Sprint(i))
		if _, err := output(ctx, "go", "test", "-c", "-tags", p.tags, "-o", program, p.module); err != nil {
			return err
		}
		for round := range rounds {
			if err := r.measure(ctx, p, program, round%2); err != nil {
				return err
			}
		}
	}
	r.load = append(r.load, load())
	return r.write(dir)
}

// measure adds one round of a pair.
func (r *results) measure(ctx context.Context, p pair, program string, first int) error {
	sides := r.of[p.name]
	for _, side := range []int{first, 1 - first} {
		benchmark := [2]string{p.berth, p.bare}[side]
		out, err := output(ctx, program, "-test.run", "^$", "-test.bench", "^"+benchmark+"$", "-test.benchtime", fmt.Sprint(p.times, "x"))
		if err != nil {
			return err
		}
		f, err := parse(out, benchmark)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %s: %+v\n", p.name, benchmark, f)
		sides[side] = append(sides[side], f)
	}
	r.of[p.name] = sides
	return nil
}

func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the programs are this repository's
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// load is the machine's load average of the last minute.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	now, _, _ := strings.Cut(string(text), " ")
	return now
}
