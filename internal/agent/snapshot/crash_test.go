package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision/memory"
)

// stories are the possible changes of one snapshot's object, in order.
var stories = map[string][]option{
	"take":                        {},
	"take, delete":                {deleting},
	"take, place on another node": {on("n2")},
}

func TestACrashAtAnyEffectEndsInTheSameState(t *testing.T) {
	for name, edits := range stories {
		t.Run(name, func(t *testing.T) {
			want, effects := play(t, edits, 0)
			if len(effects) == 0 {
				t.Fatal("the story has no effects")
			}
			for k := range effects {
				got, _ := play(t, edits, k+1)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("after a crash at effect %d (%s): %s", k+1, effects[k], diff)
				}
			}
		})
	}
}

type ending struct {
	Kept  bool
	Entry *v1alpha1.SnapshotReplica
}

// play runs a story with a crash at effect k, 0 for none.
func play(t *testing.T, edits []option, k int) (ending, []string) {
	t.Helper()
	c := &memory.Crash{At: k}
	n := newNode(t, object())
	n.disturb, n.fail = c, c.Effect
	n.restart()
	n.outlive(c)
	for _, e := range edits {
		n.edit(e)
		n.outlive(c)
	}
	return ending{Kept: n.has(), Entry: n.live.Entry(here)}, c.Effects
}

// outlive settles, with a restart if the crash comes.
func (n *node) outlive(c *memory.Crash) {
	n.t.Helper()
	for range 10 {
		result, err := n.step()
		if c.Dead {
			c.Dead = false
			n.restart()
			continue
		}
		if err == nil && result.IsZero() {
			return
		}
	}
	n.t.Fatal("the snapshot does not settle in 10 steps")
}
