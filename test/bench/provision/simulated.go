package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/figures"
)

// simulated are the measurements with a real API server and simulated nodes on the machine
// itself, where nothing is emulated. Each names the benchmark of a package that carries it
// out, and the unit to show.
var simulated = []struct{ pkg, bench, rounds, unit, says string }{
	{"./internal/controller", "Create", "200x", "p50-ms-from-answer", "CreateVolume returns after the agent's answer, p50, ms"},
	{"./internal/controller", "Create", "200x", "p95-ms-from-answer", "CreateVolume returns after the agent's answer, p95, ms"},
	{"./internal/agent", "FanOut/50-", "1x", "bytes-received", "bytes an agent receives while 50 other nodes join"},
	{"./internal/agent", "FanOut/500-", "1x", "bytes-received", "bytes an agent receives while 500 other nodes join"},
}

func (r *results) simulate(ctx context.Context, c *cluster.Cluster, _ options) error {
	assets, err := c.Lab.Output(ctx, "assets")
	if err != nil {
		return err
	}
	measured := map[string]map[string]float64{}
	for _, s := range simulated {
		key := s.pkg + " " + s.bench
		if measured[key] == nil {
			if measured[key], err = benchmark(ctx, assets, s.pkg, s.bench, s.rounds); err != nil {
				return err
			}
		}
		value, found := measured[key][s.unit]
		if !found {
			return fmt.Errorf("benchmark %s of %s reports no %s", s.bench, s.pkg, s.unit)
		}
		r.simulated = append(r.simulated, value)
	}
	return nil
}

// benchmark returns the figures of one benchmark, by unit.
func benchmark(ctx context.Context, assets, pkg, name, rounds string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", name, "-benchtime", rounds, pkg)
	cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("benchmark %s of %s: %w\n%s", name, pkg, err, out)
	}
	return parseBenchmark(bytes.NewReader(out))
}

// parseBenchmark reads the only line of results in the output of a benchmark.
func parseBenchmark(r io.Reader) (map[string]float64, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		values := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
			}
			values[fields[i+1]] = v
		}
		return values, nil
	}
	return nil, errors.Join(errors.New("the benchmark printed no result"), lines.Err())
}

func (r *results) outside() *figures.Table {
	t := &figures.Table{Head: []string{"what", "measured"}}
	for i, s := range simulated {
		t.Add(s.says, fmt.Sprintf("%.4g", r.simulated[i]))
	}
	return t
}
