package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	draw "berth.dev/berth/test/figures"
)

// figures are what one run of a benchmark printed, by their units.
type figures map[string]float64

// parse reads the line of a benchmark.
func parse(out, benchmark string) (figures, error) {
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != benchmark && !strings.HasPrefix(words[0], benchmark+"-") {
			continue
		}
		f := figures{}
		for i := 2; i+1 < len(words); i += 2 {
			value, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", benchmark, err)
			}
			f[words[i+1]] = value
		}
		return f, nil
	}
	return nil, fmt.Errorf("%s printed no figures:\n%s", benchmark, out)
}

// results are the figures of all rounds, by the benchmark.
type results struct {
	load []string
	of   map[string][]figures
}

// column returns a benchmark's figures of a unit. One that it did not print meets no target.
func (r *results) column(benchmark, unit string) (all []float64) {
	for _, f := range r.of[benchmark] {
		value, printed := f[unit]
		if !printed {
			value = math.NaN()
		}
		all = append(all, value)
	}
	return all
}

// The units of the figures.
const (
	speed, processor = "MB/s", "cpu-s/GiB"
	p99, p999        = "p99-ms", "p99.9-ms"
	longest          = "longest-ms"
)

// comparison is a benchmark of Berth beside what it is measured by.
type comparison struct {
	name, short, berth, bare string
	// leastSpeed is what the speed must be of the bare one's, and mostMore how many processor seconds
	// more a GiB may take; 0 for no target.
	leastSpeed, mostMore float64
}

var zvols = comparison{name: "ZFS, a zvol in full, beside the same TLS", short: "ZFS", berth: berthZFS, bare: bareZFS, leastSpeed: 0.9}

var comparisons = []comparison{
	{name: "bulk, beside TLS alone", short: "bulk", berth: berthBulk, bare: bareBulk, leastSpeed: 0.8},
	{name: "bulk, beside ssh", short: "ssh", berth: berthBulk, bare: sshBulk, leastSpeed: 2},
	{name: "btrfs, in full and an increment", short: "btrfs", berth: berthBtrfs, bare: bareBtrfs, mostMore: 1.2},
}

// mostSlower is how much longer a write in the foreground may take, at p99, while increments leave.
const mostSlower = 1.2

func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, `# The stream of replication beside the same work without Berth

Measured by `+"`make bench-stream`"+` on %d processors, Linux %s. Load average of the machine %s. The more other work
there is, the less the speeds by the clock say; processor time says more then. Groups can be measured anew one by one
(`+"`-only`"+`); the load is that of the newest.

- **Bulk** is 1 GiB of random bytes from memory to nowhere over loopback. Without Berth it is a copy by crypto/tls
  (TLS 1.3) with the same hash at both ends, or one through ssh with its default cipher.
- **btrfs** is a point of 512 MiB in full and an increment of 64 MiB, from one filesystem to another on this machine,
  written out at the end. Without Berth it is `+"`btrfs send | btrfs receive`"+`, without TLS and without a hash.
- **ZFS** is a zvol with 64 MiB of data, from one zpool to another in a guest whose processors are emulated. Without Berth it
  is `+"`zfs send | zfs receive`"+` through the same TLS, without a hash.
- All sides are in each round, each time another one first. Figures are medians of the rounds, ratios
  geometric means of the rounds' ratios, their intervals bootstraps over the rounds.

## Speed

`, runtime.NumCPU(), kernel(), strings.Join(r.load, " before and ")+" after")
	r.speeds().Print(w)
	fmt.Fprint(w, "\n## Processor time\n\nSeconds of a processor per GiB, of both ends together.\n\n![processor seconds per GiB](stream.svg)\n\n")
	r.processors().Print(w)
	fmt.Fprint(w, "\nOf what is more with btrfs, TLS with the hash alone takes as much as the first row says of the bare side.\n")
	fmt.Fprintf(w, "\n## Memory\n\nA process that is both ends of 8 streams of 1 GiB at once had at most **%s MiB**. An agent has one end of each, and\n"+
		"beside that what an [agent at rest](local.md#idle) has.\n", draw.Digits(draw.Median(r.column(eight, "peak-MiB"))))
	fmt.Fprint(w, "\n## What an increment costs\n\nCounted once, with btrfs: it depends on no clock.\n\n")
	r.counts().Print(w)
	fmt.Fprint(w, "\n## Writes in the foreground\n\nWrites of 4 KiB to a file of 256 MiB, each made durable (`fdatasync`), for 31 seconds a round, "+
		"while increments leave\nto another filesystem on the same disk. Milliseconds.\n\n")
	r.writes().Print(w)
}

func (r *results) speeds() *draw.Table {
	t := &draw.Table{Head: []string{"case", "rounds", "bare, MB/s", "Berth, MB/s", "ratio", "95 % interval", "target"}}
	for _, c := range append(comparisons, zvols) {
		berth, bare := r.column(c.berth, speed), r.column(c.bare, speed)
		ratio, target := draw.Ratio(berth, bare), "none"
		if c.leastSpeed > 0 {
			target = verdict(ratio.Value >= c.leastSpeed, "at least %v", c.leastSpeed)
		}
		t.Add(c.name, fmt.Sprint(len(berth)), draw.Digits(draw.Median(bare)), draw.Digits(draw.Median(berth)), draw.Digits(ratio.Value), ratio.String(), target)
	}
	return t
}

func (r *results) processors() *draw.Table {
	t := &draw.Table{Head: []string{"case", "rounds", "bare, s/GiB", "Berth, s/GiB", "more", "ratio", "95 % interval", "target"}}
	for _, c := range comparisons {
		berth, bare := r.column(c.berth, processor), r.column(c.bare, processor)
		ratio, more, target := draw.Ratio(berth, bare), draw.Median(berth)-draw.Median(bare), "none"
		if c.mostMore > 0 {
			target = verdict(more <= c.mostMore, "at most %v more", c.mostMore)
		}
		t.Add(c.name, fmt.Sprint(len(berth)), draw.Digits(draw.Median(bare)), draw.Digits(draw.Median(berth)), draw.Digits(more), draw.Digits(ratio.Value), ratio.String(), target)
	}
	return t
}

// counts are what increments cost, and the most that they may.
func (r *results) counts() *draw.Table {
	t := &draw.Table{Head: []string{"case", "counted", "target"}}
	for _, row := range []struct {
		name, benchmark, unit, noun string
		most                        float64
	}{
		{"1,000 volumes, an interval without a write: no point, no stream", idle, "processes", "processes", 0},
		{"the same: processor time", idle, "cpu-ms", "ms", none},
		{"one volume, an interval with one write of 4 KiB: on the link", increments, "4KiB-B", "bytes", none},
		{"the same: processes of both nodes", increments, "4KiB-processes", "processes", none},
		{"64 GiB sparse with 1 GiB of data, 1 % written in 5 intervals away: sent, of the full stream", increments, "churn-%", "%", 2},
		{"the same: more room at the receiver, of the copy", increments, "churn-room-%", "%", 50},
	} {
		got, target := draw.Median(r.column(row.benchmark, row.unit)), "none"
		if row.most != none {
			target = verdict(got <= row.most, "at most %v", row.most)
		}
		t.Add(row.name, draw.Digits(got)+" "+row.noun, target)
	}
	return t
}

// none is no target.
const none = -1

func (r *results) writes() *draw.Table {
	t := &draw.Table{Head: []string{"increments", "rounds", "p99", "p99.9", "longest", "p99, ratio", "95 % interval", "target"}}
	alone := r.column(writesAlone, p99)
	for _, row := range []struct{ name, benchmark string }{{"none", writesAlone}, {"each 10 s", writes10s}, {"each second", writes}} {
		got := r.column(row.benchmark, p99)
		ratio, interval, target := "", "", "none"
		if row.benchmark != writesAlone {
			of := draw.Ratio(got, alone)
			ratio, interval, target = draw.Digits(of.Value), of.String(), verdict(of.Value <= mostSlower, "at most %v", mostSlower)
		}
		t.Add(row.name, fmt.Sprint(len(got)), draw.Digits(draw.Median(got)), draw.Digits(draw.Median(r.column(row.benchmark, p999))),
			draw.Digits(draw.Median(r.column(row.benchmark, longest))), ratio, interval, target)
	}
	return t
}

func verdict(met bool, target string, bound float64) string {
	if met {
		return fmt.Sprintf(target, bound) + ": met"
	}
	return fmt.Sprintf(target, bound) + ": **not met**"
}

// write writes the page and its chart.
func (r *results) write(dir string) error {
	var page, chart bytes.Buffer
	r.print(io.MultiWriter(&page, os.Stdout))
	var bars []draw.Bar
	for _, c := range comparisons {
		for _, side := range []struct{ name, benchmark string }{{"Berth", c.berth}, {"bare", c.bare}} {
			bars = append(bars, draw.Bar{Name: c.short + ", " + side.name, Segments: []draw.Segment{{Name: side.name, Value: draw.Median(r.column(side.benchmark, processor))}}})
		}
	}
	draw.Bars(&chart, "Processor time of both ends per GiB, median", "s", bars)
	var all bytes.Buffer
	for _, benchmark := range slices.Sorted(maps.Keys(r.of)) {
		for _, f := range r.of[benchmark] {
			if err := json.NewEncoder(&all).Encode(round{benchmark, f}); err != nil {
				return err
			}
		}
	}
	for name, content := range map[string]*bytes.Buffer{"stream.md": &page, "stream.svg": &chart, rounds: &all} {
		if err := os.WriteFile(filepath.Join(dir, name), content.Bytes(), 0o644); err != nil { //nolint:gosec // it is for everyone to read
			return err
		}
	}
	return nil
}

// rounds is the file with the figures of each round, a line for each.
const rounds = "stream.jsonl"

// round is a line of it.
type round struct {
	Benchmark string  `json:"benchmark"`
	Figures   figures `json:"figures"`
}

// read reads the rounds that were measured before.
func (r *results) read(dir string) error {
	f, err := os.Open(filepath.Join(dir, rounds))
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := json.NewDecoder(f); ; {
		var one round
		if err := lines.Decode(&one); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		r.of[one.Benchmark] = append(r.of[one.Benchmark], one.Figures)
	}
}

func kernel() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(release))
}
