// Command stream measures the stream of replication beside the same work without Berth, and writes
// docs/benchmarks/stream.md, its chart, and the figures of each round (stream.jsonl).
//
// It runs the benchmarks of the packages. In each round every side is measured once, and each time another one
// first, so that other work on the machine is spread over all.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
)

// group is benchmarks of one package that are measured beside each other.
type group struct {
	module string
	tags   string
	// benchmarks as -test.bench selects them, without the ends of line.
	benchmarks []string
	// times is how many operations one round has.
	times int
	// rounds is how many are measured at most, 0 for no bound. Counts are the same in each.
	rounds int
	// guest says that it needs a machine with ZFS and disks that it may overwrite.
	guest bool
}

// The benchmarks.
const (
	berthBulk, bareBulk, sshBulk   = "BenchmarkStream", "BenchmarkBareTLS", "BenchmarkSSH"
	berthBtrfs, bareBtrfs          = "BenchmarkBtrfs", "BenchmarkBtrfsBare"
	writesAlone, writes10s, writes = "BenchmarkForeground/alone", "BenchmarkForeground/each10s", "BenchmarkForeground/each1s"
	berthZFS, bareZFS              = "BenchmarkZFS", "BenchmarkZFSBare"
	increments, idle, eight        = "BenchmarkIncrement", "BenchmarkIdle", "BenchmarkEightStreams"
)

var groups = []group{
	{module: "./internal/replicate/stream", benchmarks: []string{berthBulk, bareBulk, sshBulk}, times: 2},
	{module: "./internal/replicate/stream", benchmarks: []string{eight}, times: 1, rounds: 1},
	{module: "./internal/replicate/copies", tags: "platform", benchmarks: []string{berthBtrfs, bareBtrfs}, times: 1},
	{module: "./internal/replicate/copies", tags: "platform", benchmarks: []string{writesAlone, writes10s, writes}, times: 1},
	{module: "./internal/replicate/copies", tags: "platform", benchmarks: []string{increments, idle}, times: 1, rounds: 1},
	{module: "./internal/replicate/copies", tags: "platform", benchmarks: []string{berthZFS, bareZFS}, times: 1, rounds: 3, guest: true},
}

func main() {
	rounds := flag.Int("rounds", 5, "how often each side is measured")
	dir := flag.String("dir", "docs/benchmarks", "folder of the page")
	only := flag.String("only", "", "measure anew only the groups of which a benchmark matches this pattern; the others' rounds are read from the folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds, *dir, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench-stream:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, dir, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	temporary, err := os.MkdirTemp("", "bench-stream-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	r := results{load: []string{load()}, of: map[string][]figures{}}
	if only != "" {
		if err := r.read(dir); err != nil {
			return err
		}
	}
	for i, g := range groups {
		if !slices.ContainsFunc(g.benchmarks, pattern.MatchString) {
			continue
		}
		for _, b := range g.benchmarks {
			delete(r.of, b)
		}
		program := filepath.Join(temporary, fmt.Sprint(i))
		if _, err := output(ctx, "go", "test", "-c", "-tags", g.tags, "-o", program, g.module); err != nil {
			return err
		}
		for round := range rounds {
			if g.rounds > 0 && round == g.rounds {
				break
			}
			if err := r.measure(ctx, g, program, round); err != nil {
				return err
			}
		}
	}
	r.load = append(r.load, load())
	return r.write(dir)
}

// measure adds one round of a group.
func (r *results) measure(ctx context.Context, g group, program string, round int) error {
	for i := range g.benchmarks {
		benchmark := g.benchmarks[(i+round)%len(g.benchmarks)]
		selected := "^" + strings.ReplaceAll(benchmark, "/", "$/^") + "$"
		command := []string{program}
		if g.guest {
			command = []string{
				"bin/lab", "guest", "run", "--zfs", "--disks", "2", "--disk-size", "4G", "--env", blockdevtest.DisksVariable + "=/dev/sda,/dev/sdb",
				"--copy", program + ":/root/bench", "--", "/root/bench",
			}
		}
		command = append(command, "-test.run", "^$", "-test.bench", selected, "-test.benchtime", fmt.Sprint(g.times, "x"))
		out, err := output(ctx, command[0], command[1:]...)
		if err != nil {
			return err
		}
		f, err := parse(out, benchmark)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %v\n", benchmark, f)
		r.of[benchmark] = append(r.of[benchmark], f)
	}
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
