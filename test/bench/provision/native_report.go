package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"berth.dev/berth/test/figures"
)

// loadAverage is how many processes wanted a processor in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

func (v variant) title() string {
	return title(v.class) + ", " + cmp.Or(v.scheduler, "stock scheduler")
}

// took returns the times from posted to running of all runs of a variant.
func (r *nativeResults) took(v variant) []time.Duration { return tooks(r.lines[v]) }

func (r *nativeResults) headline() *figures.Table {
	t := &figures.Table{Head: []string{"what", "p50", "p95", "max", "more than the pod alone (p50)"}}
	for _, v := range variants {
		took := r.took(v)
		more := figures.Quantile(took, 0.5) - figures.Quantile(r.took(variant{scheduler: v.scheduler}), 0.5)
		t.Add(v.title(), figures.Seconds(figures.Quantile(took, 0.5)), figures.Seconds(figures.Quantile(took, 0.95)),
			figures.Seconds(figures.Quantile(took, 1)), figures.Seconds(more))
	}
	return t
}

// setAside counts the pods that came to the kubelet too early. The kubelet tries such a pod
// again after five seconds or more, and nothing else takes so long.
func (r *nativeResults) setAside() int {
	n := 0
	for _, lines := range r.lines {
		for _, line := range lines {
			if line[running].Sub(line[scheduled]) > 4*time.Second {
				n++
			}
		}
	}
	return n
}

// reached are the names of the steps when they are first seen. Their order differs
// between the two schedulers.
var reached = [stations]string{
	selected: "claim has its node", placed: "Volume has its place", carved: "agent reports it carved",
	bound: "claim is bound", scheduled: "pod is bound to its node", running: "pod runs",
}

// journey returns when each step was seen, in milliseconds after posting.
func (t *timeline) journey() string {
	var all strings.Builder
	for s := selected; s < stations; s++ {
		if !t[s].IsZero() {
			fmt.Fprintf(&all, " %s %d", reached[s], t[s].Sub(t[posted]).Milliseconds())
		}
	}
	return all.String() + " ms"
}

func (r *nativeResults) steps() *figures.Table {
	t := &figures.Table{Head: []string{"step, ext4", "stock scheduler", berthScheduler, "pod alone"}}
	for s := selected; s < stations; s++ {
		row := []string{reached[s]}
		for _, v := range []variant{{"berth-ext4", ""}, {"berth-ext4", berthScheduler}, {"", ""}} {
			var at []time.Duration
			for _, line := range r.lines[v] {
				if !line[s].IsZero() {
					at = append(at, line[s].Sub(line[posted]))
				}
			}
			if len(at) == 0 {
				row = append(row, "-")
				continue
			}
			row = append(row, figures.Seconds(figures.Quantile(at, 0.5)))
		}
		t.Add(row...)
	}
	return t
}

func (r *nativeResults) bars() []figures.Bar {
	var bars []figures.Bar
	for _, v := range variants {
		var before time.Duration
		bar := figures.Bar{Name: strings.TrimPrefix(v.title(), "volume with ")}
		for _, s := range []station{scheduled, running} {
			var at []time.Duration
			for _, line := range r.lines[v] {
				at = append(at, line[s].Sub(line[posted]))
			}
			until := figures.Quantile(at, 0.5)
			bar.Segments = append(bar.Segments, figures.Segment{Name: "until the " + reached[s], Value: (until - before).Seconds()})
			before = until
		}
		bars = append(bars, bar)
	}
	return bars
}

func (r *nativeResults) write(o options) error {
	text := func(w io.Writer) { r.print(w, o) }
	return publish(o.dir, "native", "From claim and pod posted to pod running, native node, median", text, r.bars())
}

func (r *nativeResults) print(w io.Writer, o options) {
	fmt.Fprintf(w, `# From a claim to a running pod, at native speed

Measured by `+"`make bench-native`"+` on one native node of the lab: containerd and kubelet on the machine itself,
%d processors, nothing emulated, control plane beside it. LVM is played by a stand-in over loop devices that takes
20 ms for a query and 80 ms for a change, so the times show everything around LVM and nothing of it.
Claims of 1 GiB. Kubernetes %s, %s, Linux %s. Load average of the machine %s before and %s after; what is
measured goes before other work, as far as the kernel lets it.

## Claim and pod posted to pod running

%d runs of each, in turn. Seconds.

`, runtime.NumCPU(), r.node.KubeletVersion, r.node.ContainerRuntimeVersion, r.node.KernelVersion, r.load[0], r.load[1], o.runs)
	r.headline().Print(w)
	if n := r.setAside(); n > 0 {
		fmt.Fprintf(w, "\nRuns that took seconds between node and running: the kubelet saw the pod before its claim's phase was Bound, and\nset it aside for up to ten seconds: %d.\n", n)
	}
	fmt.Fprint(w, "\n![from posted to running](native.svg)\n\n## When each step is seen\n\nSeconds after posting, p50. berth-scheduler writes the Volume before the claim has its node.\n\n")
	r.steps().Print(w)
	fmt.Fprint(w, elsewhere)
}

// elsewhere is the text about the measurement of another driver, by the same clock.
const elsewhere = `
## Beside TopoLVM

TopoLVM v0.41.0 on the same kind of node, with Kubernetes of the same version, a stand-in with the same two
delays, the same claims and pods, and the stock scheduler: 2.81 s with ext4 and with xfs (p50; p95 2.88 s and
2.86 s), 0.20 s for a pod without a volume, n = 20, on a machine of the same kind that did nothing else. It was
not measured in this run: compare what a volume costs over the pod alone, 2.6 s there.
`
