package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"berth.dev/berth/test/figures"
)

// write puts the results into the benchmarks' folder.
func (r *results) write(o options) error {
	text := func(w io.Writer) { r.print(w, o) }
	return publish(o.dir, "provision", "From claim and pod posted to pod running, median", text, r.bars())
}

// publish writes a page, here and to standard output, and the chart that it shows.
func publish(dir, name, title string, text func(io.Writer), bars []figures.Bar) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	page, err := os.Create(filepath.Join(dir, name+".md"))
	if err != nil {
		return err
	}
	defer page.Close()
	text(io.MultiWriter(page, os.Stdout))
	chart, err := os.Create(filepath.Join(dir, name+".svg"))
	if err != nil {
		return err
	}
	defer chart.Close()
	figures.Bars(chart, title, "s", bars)
	return nil
}

func (r *results) print(w io.Writer, o options) {
	fmt.Fprintf(w, `# From a claim to a running pod

Measured by `+"`make bench-provision`"+` on a lab of three emulated nodes on %d processors, Kubernetes' own
scheduler, thick LVM, claims of 1 GiB. The nodes' processors are emulated and ten to twenty times slower
than real ones: read times as ratios to the rows of the same run. Counts do not depend on the machine.
Kubernetes %s, %s, %s, Linux %s.

## Claim and pod posted to pod running

%d runs of each, in turn; %d at once. Seconds.

`, runtime.NumCPU(), r.node.KubeletVersion, r.node.ContainerRuntimeVersion, r.node.OSImage, r.node.KernelVersion, o.runs, o.burst)
	r.headline().Print(w)
	fmt.Fprintf(w, "\nFailed attempts to provision in the runs at once: %d.\n\n![share of each step](provision.svg)\n\n## Share of each step\n\nSeconds, ext4.\n\n", r.failures)
	r.shares("berth-ext4").Print(w)
	fmt.Fprint(w, "\n## What one volume's life costs\n\nProcesses on the node, and successful writes to the Volume as the API server counts them.\n\n")
	r.costs().Print(w)
	fmt.Fprint(w, "\n## With simulated nodes\n\nA real API server and agents without disks, on the machine itself: nothing here is emulated.\n\n")
	r.outside().Print(w)
}

// title names a class for people.
func title(class string) string {
	if class == "" {
		return "pod without a volume"
	}
	return "volume with " + strings.TrimPrefix(class, "berth-")
}

func (r *results) headline() *figures.Table {
	t := &figures.Table{Head: []string{"what", "p50", "p95", "max", "times the pod alone (p50)"}}
	floor := figures.Quantile(tooks(r.sequential[""]), 0.5)
	for _, class := range classes {
		took := tooks(r.sequential[class])
		t.Add(append([]string{title(class)}, row(took, floor)...)...)
	}
	for _, fs := range []string{"ext4", "xfs"} {
		t.Add(append([]string{"bare lvcreate, mkfs." + fs + ", mount"}, row(r.bare[fs+" all"], floor)...)...)
	}
	burstFloor := figures.Quantile(tooks(r.burst[""]), 1)
	for _, class := range classes[:2] {
		took := tooks(r.burst[class])
		t.Add(append([]string{fmt.Sprintf("%d at once, %s", len(took), title(class))}, row(took, burstFloor)...)...)
	}
	return t
}

func (r *results) shares(class string) *figures.Table {
	t := &figures.Table{Head: []string{"step", "p50", "p95"}}
	for s := posted + 1; s < stations; s++ {
		d := stretches(r.sequential[class], s)
		t.Add(between[s], figures.Seconds(figures.Quantile(d, 0.5)), figures.Seconds(figures.Quantile(d, 0.95)))
	}
	return t
}

func (r *results) costs() *figures.Table {
	t := &figures.Table{Head: []string{"step", "processes of LVM", "other processes", "writes to the Volume", "lists of Volumes"}}
	for _, op := range r.life {
		lvm, other := map[string]int{}, map[string]int{}
		for command, n := range op.processes {
			if isLVM(command) {
				lvm[command] = n
			} else {
				other[command] = n
			}
		}
		t.Add(op.name, sum(lvm), sum(other), sum(op.writes), fmt.Sprint(op.lists))
	}
	return t
}

func isLVM(command string) bool {
	return strings.HasPrefix(command, "lv") || strings.HasPrefix(command, "vg") || strings.HasPrefix(command, "pv") || command == "fullreport"
}

func (r *results) bars() []figures.Bar {
	var bars []figures.Bar
	for _, class := range classes {
		bar := figures.Bar{Name: title(class)}
		for s := posted + 1; s < stations; s++ {
			d := figures.Quantile(stretches(r.sequential[class], s), 0.5)
			bar.Segments = append(bar.Segments, figures.Segment{Name: between[s], Value: d.Seconds()})
		}
		bars = append(bars, bar)
	}
	return bars
}

func tooks(lines []timeline) []time.Duration {
	var d []time.Duration
	for _, l := range lines {
		d = append(d, l.took())
	}
	return d
}

func stretches(lines []timeline, s station) []time.Duration {
	var d []time.Duration
	for _, l := range lines {
		d = append(d, l.stretch(s))
	}
	return d
}

func row(d []time.Duration, floor time.Duration) []string {
	p50 := figures.Quantile(d, 0.5)
	ratio := "-"
	if floor > 0 {
		ratio = fmt.Sprintf("%.2f", p50.Seconds()/floor.Seconds())
	}
	return []string{figures.Seconds(p50), figures.Seconds(figures.Quantile(d, 0.95)), figures.Seconds(figures.Quantile(d, 1)), ratio}
}
