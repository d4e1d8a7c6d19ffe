package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	draw "berth.dev/berth/test/figures"
)

// figures are what one benchmark printed.
type figures struct {
	// speed is in MB/s by the clock, and processor in seconds per GiB, of both ends together.
	speed, processor float64
}

// parse reads the line of a benchmark.
func parse(out, benchmark string) (f figures, err error) {
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != benchmark && !strings.HasPrefix(words[0], benchmark+"-") {
			continue
		}
		for i := 2; i+1 < len(words); i += 2 {
			value, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return f, fmt.Errorf("%s: %w", benchmark, err)
			}
			switch words[i+1] {
			case "MB/s":
				f.speed = value
			case "cpu-s/GiB":
				f.processor = value
			}
		}
	}
	if f.speed == 0 || f.processor == 0 {
		return f, fmt.Errorf("%s printed no figures:\n%s", benchmark, out)
	}
	return f, nil
}

// results are all rounds, by the pair's name: those of Berth and the bare ones.
type results struct {
	load []string
	of   map[string][2][]figures
}

func (r *results) column(name string, side int, of func(figures) float64) (all []float64) {
	for _, f := range r.of[name][side] {
		all = append(all, of(f))
	}
	return all
}

func speed(f figures) float64     { return f.speed }
func processor(f figures) float64 { return f.processor }

const (
	leastSpeed = 0.8 // of the bare copy's
	mostMore   = 1.2 // processor seconds per GiB more than the bare pipe
)

func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, `# The stream of replication beside the same work without Berth

Measured by `+"`make bench-stream`"+` on %d processors, Linux %s. Load average of the machine %s. The more other work
there is, the less the speeds by the clock say; processor time says more then.

- **Bulk** is 1 GiB of random bytes from memory to nowhere over loopback; without Berth it is a copy by crypto/tls
  (TLS 1.3) with the same hash at both ends.
- **btrfs** is a point of 512 MiB in full and an increment of 64 MiB, from one filesystem to another on this machine,
  written out at the end. Without Berth it is `+"`btrfs send | btrfs receive`"+`, without TLS and without a hash.
- Both sides are in each round, each time another one first. Figures are medians of the rounds, ratios
  geometric means of the rounds' ratios, their intervals bootstraps over the rounds.

## Speed

`, runtime.NumCPU(), kernel(), strings.Join(r.load, " before and ")+" after")
	r.speeds().Print(w)
	fmt.Fprint(w, "\n## Processor time\n\nSeconds of a processor per GiB, of both ends together.\n\n![processor seconds per GiB](stream.svg)\n\n")
	r.processors().Print(w)
	fmt.Fprint(w, "\nNot measured here yet: the same bytes through ssh, what an interval without writes costs, writes in the foreground\n"+
		"while increments leave, large sparse volumes, the memory of many streams at once, and ZFS.\n")
}

func (r *results) speeds() *draw.Table {
	t := &draw.Table{Head: []string{"case", "rounds", "bare, MB/s", "Berth, MB/s", "ratio", "95 % interval", "target"}}
	for i, p := range pairs {
		berth, bare := r.column(p.name, 0, speed), r.column(p.name, 1, speed)
		ratio, target := draw.Ratio(berth, bare), "none"
		if i == 0 {
			target = verdict(ratio.Value >= leastSpeed, "at least %v", leastSpeed)
		}
		t.Add(p.name, fmt.Sprint(len(berth)), draw.Digits(draw.Median(bare)), draw.Digits(draw.Median(berth)), draw.Digits(ratio.Value), ratio.String(), target)
	}
	return t
}

func (r *results) processors() *draw.Table {
	t := &draw.Table{Head: []string{"case", "rounds", "bare, s/GiB", "Berth, s/GiB", "more", "ratio", "95 % interval", "target"}}
	for i, p := range pairs {
		berth, bare := r.column(p.name, 0, processor), r.column(p.name, 1, processor)
		ratio, more, target := draw.Ratio(berth, bare), draw.Median(berth)-draw.Median(bare), "none"
		if i == 1 {
			target = verdict(more <= mostMore, "at most %v more", mostMore)
		}
		t.Add(p.name, fmt.Sprint(len(berth)), draw.Digits(draw.Median(bare)), draw.Digits(draw.Median(berth)), draw.Digits(more), draw.Digits(ratio.Value), ratio.String(), target)
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
	for _, p := range pairs {
		short, _, _ := strings.Cut(p.name, ",")
		for side, name := range []string{"Berth", "bare"} {
			bars = append(bars, draw.Bar{Name: short + ", " + name, Segments: []draw.Segment{{Name: name, Value: draw.Median(r.column(p.name, side, processor))}}})
		}
	}
	draw.Bars(&chart, "Processor time of both ends per GiB, median", "s", bars)
	for name, content := range map[string]*bytes.Buffer{"stream.md": &page, "stream.svg": &chart} {
		if err := os.WriteFile(filepath.Join(dir, name), content.Bytes(), 0o644); err != nil { //nolint:gosec // it is for everyone to read
			return err
		}
	}
	return nil
}

func kernel() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(release))
}
