package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"berth.dev/berth/test/figures"
)

// ledgerFigure is one figure of a Go benchmark.
type ledgerFigure struct {
	dir, pkg, bench string // which
	line, unit      string // of its output
	says, target    string
	scale           float64
	value           float64
}

var ledgerFigures = []ledgerFigure{
	{dir: "scheduler", pkg: "./internal/plugin", bench: "Filter$", line: "Filter/a", unit: "ns/op", says: "Filter on one node, one claim, ns", target: "under 1000"},
	{dir: "scheduler", pkg: "./internal/plugin", bench: "Filter$", line: "Filter/a+b+c", unit: "ns/op", says: "Filter on one node, three claims, ns"},
	{dir: "scheduler", pkg: "./internal/plugin", bench: "Filter$", line: "Filter/a+b+c", unit: "allocs/op", says: "allocations of Filter, three claims", target: "0"},
	{dir: ".", pkg: "./internal/ledger", bench: "Fit$/(one|three)_claims?$", line: "Fit/one_claim", unit: "cpu-ns/op", says: "of that the ledger, one claim, ns"},
	{dir: ".", pkg: "./internal/ledger", bench: "ReserveAndUnreserve", line: "ReserveAndUnreserve/1_claims,_200_volumes_on_the_node", unit: "cpu-ns/op", says: "Reserve and Unreserve, one claim, us", target: "under 10 for Reserve", scale: 1e-3},
	{dir: ".", pkg: "./internal/ledger", bench: "ReserveAndUnreserve", line: "ReserveAndUnreserve/3_claims,_200_volumes_on_the_node", unit: "cpu-ns/op", says: "Reserve and Unreserve, three claims, us", scale: 1e-3},
	{dir: ".", pkg: "./internal/ledger", bench: "Rebuild", line: "Rebuild", unit: "cpu-ns/op", says: "rebuild at start, 5,000 nodes and 100,000 volumes, s", scale: 1e-9},
	{dir: ".", pkg: "./internal/ledger", bench: "Rebuild", line: "Rebuild", unit: "bytes/volume", says: "memory for those, bytes for each volume"},
	{dir: ".", pkg: "./internal/ledger", bench: "Rebuild", line: "Rebuild", unit: "bytes/volume", says: "memory for those, MiB in all", scale: 100_000.0 / (1 << 20)},
}

// measureLedger runs the benchmarks of the packages that decide.
func (r *results) measureLedger(ctx context.Context) error {
	printed := map[string]benchmarks{}
	for _, f := range ledgerFigures {
		key := f.pkg + " " + f.bench
		if printed[key] == nil {
			fmt.Fprintf(os.Stderr, "==> benchmark %s of %s\n", f.bench, f.pkg)
			var err error
			if printed[key], err = runBenchmark(ctx, r.root+"/"+f.dir, f.pkg, f.bench); err != nil {
				return err
			}
		}
		value, found := printed[key][f.line][f.unit]
		if !found {
			return fmt.Errorf("benchmark %s of %s prints no %s for %s", f.bench, f.pkg, f.unit, f.line)
		}
		if f.value = value; f.scale != 0 {
			f.value *= f.scale
		}
		r.ledger = append(r.ledger, f)
	}
	return nil
}

// benchmarks are the printed figures, by line and unit.
type benchmarks map[string]map[string]float64

func runBenchmark(ctx context.Context, dir, pkg, name string) (benchmarks, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-trimpath", "-run", "^$", "-bench", name, pkg) //nolint:forbidigo // a benchmark's own tool
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("benchmark %s of %s: %w\n%s", name, pkg, err, out)
	}
	return parseBenchmarks(strings.NewReader(string(out)))
}

// parseBenchmarks reads the output of `go test -bench`. Names lose their beginning,
// and the number of processors at their end.
func parseBenchmarks(r io.Reader) (benchmarks, error) {
	all := benchmarks{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		if at := strings.LastIndexByte(name, '-'); at > 0 {
			if _, err := strconv.Atoi(name[at+1:]); err == nil {
				name = name[:at]
			}
		}
		values := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
			}
			values[fields[i+1]] = v
		}
		all[name] = values
	}
	return all, lines.Err()
}

func (r *results) ledgerTable() *figures.Table {
	t := &figures.Table{Head: []string{"what", "measured", "target"}}
	for _, f := range r.ledger {
		t.Add(f.says, fmt.Sprintf("%.4g", f.value), f.target)
	}
	return t
}
