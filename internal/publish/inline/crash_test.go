package inline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
)

// survive repeats a step as the kubelet does until it succeeds, and restarts after
// the crash if there is one.
func (n *node) survive(comeBack func(*node), step func() error) {
	n.t.Helper()
	for range 10 {
		err := step()
		if n.crash.Dead {
			n.crash.Dead = false
			comeBack(n)
			continue
		}
		if err == nil {
			return
		}
	}
	n.t.Fatal("the step does not succeed in 10 tries")
}

// endings are the ways in which a volume ends.
var endings = map[string]func(n *node, comeBack func(*node)){
	"the kubelet unpublishes the volume": func(n *node, comeBack func(*node)) {
		n.survive(comeBack, func() error { return n.Unpublish(n.t.Context(), h, n.target()) })
		n.kubeletForgets()
	},
	"the kubelet loses the volume": func(n *node, comeBack func(*node)) {
		n.reboot()
		n.kubeletForgets()
		n.here.Delete(uid)
		n.survive(comeBack, func() error {
			n.clock.SetTime(n.clock.Now().Add(askInterval))
			return n.Sweep(n.t.Context(), n.Pools())
		})
	},
	"the kubelet begins to unpublish the volume and loses the volume": func(n *node, comeBack func(*node)) {
		_ = n.Unpublish(n.t.Context(), h, n.target())
		n.crash.Dead = false
		n.reboot()
		n.kubeletForgets()
		n.here.Delete(uid)
		n.survive(comeBack, func() error {
			n.clock.SetTime(n.clock.Now().Add(askInterval))
			return n.Sweep(n.t.Context(), n.Pools())
		})
	},
}

func TestACrashAtAnyEffectLosesNoDataAndLeavesNothingBehind(t *testing.T) {
	for what, comeBack := range map[string]func(*node){"process": (*node).restart, "machine": (*node).reboot} {
		for how, end := range endings {
			t.Run(what+", "+how, func(t *testing.T) {
				effects := live(t, 0, comeBack, end)
				for _, needed := range []string{"after Create", "after Format", "after Set mark", "after Mount", "after Delete", "after Remove mark"} {
					if !slices.Contains(effects, needed) {
						t.Fatalf("the story has no effect %q: %q", needed, effects)
					}
				}
				for k := range effects {
					t.Run(fmt.Sprintf("%d %s", k+1, effects[k]), func(t *testing.T) { live(t, k+1, comeBack, end) })
				}
			})
		}
	}
}

// live plays the life of a volume with a crash at effect k, 0 for none.
func live(t *testing.T, k int, comeBack func(*node), end func(*node, func(*node))) []string {
	n := newNode(t)
	n.crash.At = k
	n.survive(comeBack, func() error { return n.Publish(t.Context(), n.request()) })
	if !n.mounted() {
		t.Fatalf("the pod does not have its volume: %s", n.left())
	}
	before := len(n.crash.Effects)
	comeBack(n)
	n.survive(comeBack, func() error { return n.Publish(t.Context(), n.request()) })
	for _, effect := range n.crash.Effects[before:] {
		if effect == "after Create" || effect == "after Delete" {
			t.Errorf("%s after the pod had its data", effect)
		}
	}
	end(n, comeBack)
	if got := n.left(); got != nothing {
		t.Errorf("left on the node: %s", got)
	}
	return n.crash.Effects
}

// A disk that is lost at any point after the pod had its data must never lead to
// an empty volume in its place.
func TestDataThatIsLostIsNeverReplaced(t *testing.T) {
	for what, comeBack := range map[string]func(*node){"process": (*node).restart, "machine": (*node).reboot} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t)
			n.publish()
			pool := n.record().Pool
			comeBack(n)
			n.disks.RemovePool(pool)
			for range 3 {
				err := n.Publish(t.Context(), n.request())
				if !errors.Is(err, provision.ErrNotFound) || !strings.Contains(err.Error(), "bring its disk back, or delete the pod") {
					t.Fatalf("error %v; want %v and what can be done", err, provision.ErrNotFound)
				}
				comeBack(n)
			}
			if n.record() != nil {
				t.Error("the volume was made again")
			}
			// The pod can end. It never comes back, so nothing of its volume has to stay.
			if err := n.Unpublish(t.Context(), h, n.target()); err != nil {
				t.Fatal(err)
			}
			if got := n.left(); got != nothing {
				t.Errorf("left on the node: %s", got)
			}
		})
	}
}
