package rounds

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/test/figures"
)

// Page writes the page of the rounds, and of what they are compared with.
func Page(w io.Writer, all, beside []Round) {
	fmt.Fprintf(w, `# Failover of a shared disk

Measured by `+"`make bench-failover`"+` on a lab of three emulated nodes and an iSCSI target on 2 processors. The nodes'
processors are emulated and ten to twenty times slower than real ones, and other programs use the machine,
too. In each round one fault meets the node that writes, or its pod is evicted as planned. The writer syncs each record, acknowledges it over
the node's console, and pauses for 0.1 s. After each round `+"`hack/verify-lun`"+` reads the target's file on the
machine, without Berth's code. Each round is a line of `+"`failover.jsonl`"+`, which has all rounds that were played,
those that failed included.

`)
	sums(w, all)
	fmt.Fprintf(w, "\n## Rounds by fault\n\nSeconds. A gap is the longest time between two acknowledged writes.\n\n")
	faults(all).Print(w)
	lost, planned := parted(all)
	fmt.Fprintf(w, "\n## Steps of a failover\n\nSeconds after the fault, in the rounds in which another writer took over.\n\n")
	steps(lost).Print(w)
	fmt.Fprintf(w, "\n## Steps of a planned move\n\nSeconds after the eviction of the pod, whose node is cordoned.\n\n")
	steps(planned).Print(w)
	fmt.Fprintf(w, `
## Beside Kubernetes itself

Measured by `+"`make bench-failover-beside`"+`. Stock Kubernetes is a Deployment on the same disk, by the kubelet's own
iSCSI plugin: one node at a time, no standby, and Kubernetes' own time-outs. Its node loses its power. In the other rounds an administrator taints the node out of
service at that moment. A round fails if nothing is written within 13 minutes. A node is lost after 50 s, and its pod
is evicted after five minutes. That pod stays, because its node cannot say that it has ended, and so does its hold of
the volume. Seconds, on the same lab: from the last write to the next one, and of the plain pod from its creation
until it runs.

`)
	compared(lost, planned, beside).Print(w)
	failures(w, slices.Concat(all, beside))
}

// parted are the rounds in which something is lost, and the planned moves.
func parted(all []Round) (lost, planned []Round) {
	for i := range all {
		if all[i].Fault == Planned {
			planned = append(planned, all[i])
		} else {
			lost = append(lost, all[i])
		}
	}
	return lost, planned
}

// The cases that failovers are compared with.
const (
	PlainPod    = "a plain pod, from created to running"
	Stock       = "stock Kubernetes, power off"
	StockTaints = "stock Kubernetes, power off, tainted out of service at once"
)

// compared is a row for each case: the time from the last write to the first one after it, or that of a pod's start.
func compared(lost, planned, beside []Round) *figures.Table {
	t := &figures.Table{Head: []string{"case", "rounds", "p50", "max", "failed"}}
	add := func(name string, rounds []Round, fault string) {
		var took []time.Duration
		failed := 0
		for i := range rounds {
			switch r := &rounds[i]; {
			case r.Fault != fault:
			case r.Failed != "":
				failed++
			default:
				took = append(took, duration(r.Gap))
			}
		}
		t.Add(name, strconv.Itoa(len(took)+failed), quantile(took, 0.5), quantile(took, 1), strconv.Itoa(failed))
	}
	add(PlainPod, beside, PlainPod)
	add("Berth, planned move", planned, Planned)
	add("Berth, power off", lost, "power off")
	add(StockTaints, beside, StockTaints)
	add(Stock, beside, Stock)
	return t
}

// sums says how many rounds there are, and how many of them went badly.
func sums(w io.Writer, all []Round) {
	fmt.Fprintf(w, "%d rounds. %d of them failed. In %d of them the disk showed a lost, replaced or interleaved write.\n",
		len(all), count(all, func(r *Round) bool { return r.Failed != "" }), count(all, func(r *Round) bool { return len(r.Harm) > 0 }))
}

func count(all []Round, is func(*Round) bool) (n int) {
	for i := range all {
		if is(&all[i]) {
			n++
		}
	}
	return n
}

func faults(all []Round) *figures.Table {
	byFault := map[string][]Round{}
	for i := range all {
		byFault[all[i].Fault] = append(byFault[all[i].Fault], all[i])
	}
	t := &figures.Table{Head: []string{"fault", "rounds", "moved", "booted", "gap p50", "gap max", "ready again p50", "ready again max", "failed"}}
	for _, fault := range slices.Sorted(maps.Keys(byFault)) {
		of := byFault[fault]
		gaps, backs := []time.Duration{}, []time.Duration{}
		for i := range of {
			if of[i].Failed == "" {
				gaps, backs = append(gaps, duration(of[i].Gap)), append(backs, duration(of[i].Back))
			}
		}
		t.Add(fault, strconv.Itoa(len(of)),
			strconv.Itoa(count(of, func(r *Round) bool { return r.Moved })),
			strconv.Itoa(count(of, func(r *Round) bool { return r.Rebooted })),
			quantile(gaps, 0.5), quantile(gaps, 1), quantile(backs, 0.5), quantile(backs, 1),
			strconv.Itoa(count(of, func(r *Round) bool { return r.Failed != "" })))
	}
	return t
}

func steps(all []Round) *figures.Table {
	at := map[string][]time.Duration{}
	for i := range all {
		if !all[i].Moved {
			continue
		}
		for _, s := range all[i].Steps {
			at[s.Name] = append(at[s.Name], duration(s.After))
		}
	}
	t := &figures.Table{Head: []string{"step", "rounds", "p50", "p95", "max"}}
	for _, name := range order {
		if s := at[name]; len(s) > 0 {
			t.Add(name, strconv.Itoa(len(s)), quantile(s, 0.5), quantile(s, 0.95), quantile(s, 1))
		}
	}
	return t
}

func failures(w io.Writer, all []Round) {
	failed := slices.DeleteFunc(slices.Clone(all), func(r Round) bool { return r.Failed == "" && len(r.Harm) == 0 })
	if len(failed) == 0 {
		return
	}
	fmt.Fprintf(w, "\n## Rounds that failed\n\n")
	for i := range failed {
		r := &failed[i]
		fmt.Fprintf(w, "- seed %d, round %d, %s: %s\n", r.Seed, r.Number, r.Fault, strings.Join(slices.Concat(reason(r), r.Harm), "; "))
	}
}

func reason(r *Round) []string {
	if r.Failed == "" {
		return nil
	}
	return []string{r.Failed}
}

func quantile(samples []time.Duration, q float64) string {
	if len(samples) == 0 {
		return "-"
	}
	return figures.Seconds(figures.Quantile(samples, q))
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
