package owner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

const podA, podB = "/pods/a", "/pods/b"

// inTwo is a volume that the node has in its second epoch.
func inTwo() journal.Kept {
	return journal.Kept{Volume: volume, Opened: two, Closed: one, Taken: journal.Taken{Epoch: two, Boot: "boot", Block: true}}
}

func given(path string) journal.Given { return journal.Given{Path: path, Epoch: two, Boot: "boot"} }

func inOne(path string) journal.Given { return journal.Given{Path: path, Epoch: one, Boot: "boot"} }

// A pod that began in an epoch that is over has a dead mount. A kubelet that begins anew asks for its volume all the
// same, and so does one that has another pod.
func TestNoEpochBeginsOnANodeWithAPodThatLostTheVolume(t *testing.T) {
	for name, test := range map[string]struct {
		given          []journal.Given
		closed         bool // the second epoch is over, too
		targets, begun []string
		fails          error
		want           string
	}{
		"no pod got it":                             {want: "Read, stage, tend, use"},
		"a pod got it in this epoch":                {given: []journal.Given{given(podA)}, targets: []string{podA}, begun: []string{podA}, want: "Read, stage, tend, use"},
		"a pod got it in this epoch, which is over": {given: []journal.Given{given(podA)}, closed: true, targets: []string{podA}, begun: []string{podA}, want: "Read, Begun [/pods/a], tend"},
		"a pod lost it":                             {given: []journal.Given{inOne(podA)}, targets: []string{podA}, begun: []string{podA}, want: "Read, Begun [/pods/a], tend"},
		"a pod lost it in an earlier boot":          {given: []journal.Given{{Path: podA, Epoch: one, Boot: "before"}}, targets: []string{podA}, begun: []string{podA}, want: "Read, stage, tend, use"},
		"a pod lost it, and was unpublished":        {given: []journal.Given{inOne(podA)}, begun: []string{podA}, want: "Read, stage, tend, use"},
		"a pod lost it, and has not begun":          {given: []journal.Given{inOne(podA)}, targets: []string{podA}, want: "Read, Begun [/pods/a], stage, tend, use"},
		"of two pods that lost it one has begun":    {given: []journal.Given{inOne(podA), inOne(podB)}, targets: []string{podA, podB}, begun: []string{podB}, want: "Read, Begun [/pods/a /pods/b], tend"},
		"the pods cannot be asked for":              {given: []journal.Given{inOne(podA)}, targets: []string{podA}, fails: errBroken, want: "Read, Begun [/pods/a], tend"},
	} {
		t.Run(name, func(t *testing.T) {
			b, q := onQuietBench(t, ownership.Done)
			b.hint(func(h *hint) { h.cleared = b.lapses })
			b.world.targets, b.world.begun, b.fails["Begun"] = test.targets, test.begun, test.fails
			if q.kept = inTwo(); test.closed {
				q.kept.Closed = two
				b.hint(func(h *hint) { h.told = two.Number })
			}
			q.kept.Given = test.given
			err := b.Take(t.Context(), volume, func(context.Context) error { return b.does("use") })
			used := strings.HasSuffix(test.want, "use")
			if b.effects() != test.want || (err == nil) != used {
				t.Errorf("%v, after %q", err, b.effects())
			}
			if !used && (!errors.Is(err, provision.ErrUnavailable) || test.fails == nil && !strings.Contains(err.Error(), "dead mount")) {
				t.Errorf("it says %v", err)
			}
			b.hint(func(h *hint) {
				if h.wanted.IsZero() == used {
					t.Errorf("an epoch that is over is kept for the kubelet until %v", h.wanted)
				}
			})
		})
	}
}

func TestNoPodIsAskedForUnlessAKubeletAsks(t *testing.T) {
	b, q := onQuietBench(t, ownership.Done)
	q.kept = inTwo()
	q.kept.Given, b.world.targets = []journal.Given{inOne(podA)}, []string{podA}
	if _, err := b.follow(t.Context(), volume, &asking{}); err != nil || b.effects() != "Read, tend" {
		t.Errorf("%v, after %q", err, b.effects())
	}
}

func TestWhereAPodGetsTheVolumeIsKeptBeforeItGetsIt(t *testing.T) {
	elsewhere := journal.Given{Path: podB, Epoch: two, Boot: "before"}
	for name, test := range map[string]struct {
		given   []journal.Given
		targets []string
		begun   []string
		fails   string
		want    string
		kept    []journal.Given
	}{
		"the first pod":                         {want: "Store, use", kept: []journal.Given{given(podA)}},
		"the same pod again":                    {given: []journal.Given{given(podA)}, want: "use", kept: []journal.Given{given(podA)}},
		"a second pod":                          {given: []journal.Given{given(podB)}, targets: []string{podB}, want: "Store, use", kept: []journal.Given{given(podA), given(podB)}},
		"after another pod was unpublished":     {given: []journal.Given{given(podB)}, want: "Store, use", kept: []journal.Given{given(podA)}},
		"after another boot":                    {given: []journal.Given{elsewhere}, targets: []string{podB}, want: "Store, use", kept: []journal.Given{given(podA)}},
		"a pod that lost it and has not begun":  {given: []journal.Given{inOne(podA)}, targets: []string{podA}, want: "Begun [/pods/a], Uncover /pods/a, Store, use", kept: []journal.Given{given(podA)}},
		"a pod that lost it and has begun":      {given: []journal.Given{inOne(podA)}, targets: []string{podA}, begun: []string{podA}, want: "Begun [/pods/a]", kept: []journal.Given{inOne(podA)}},
		"a path that cannot be uncovered":       {given: []journal.Given{inOne(podA)}, targets: []string{podA}, fails: "Uncover", want: "Begun [/pods/a], Uncover /pods/a", kept: []journal.Given{inOne(podA)}},
		"it cannot be kept, and no pod gets it": {fails: "Store", want: "Store"},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			b.world.targets, b.world.begun = test.targets, test.begun
			if test.fails != "" {
				b.fails[test.fails] = errBroken
			}
			b.world.kept = inTwo()
			b.world.kept.Given = test.given
			err := b.Holds(t.Context(), volume, podA, func(context.Context) error { return b.does("use") })
			if used := strings.HasSuffix(test.want, "use"); b.effects() != test.want || (err == nil) != used {
				t.Errorf("%v, after %q", err, b.effects())
			}
			if diff := cmp.Diff(test.kept, b.world.kept.Given); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAVolumeThatIsUsedOnItsNodeAloneIsAskedForNoPod(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	b.world.kept = inTwo()
	if err := b.Holds(t.Context(), volume, "", func(context.Context) error { return nil }); err != nil || b.effects() != "" {
		t.Errorf("%v, after %q", err, b.effects())
	}
}
