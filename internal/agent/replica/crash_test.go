package replica

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/provision/memory"
)

// stories are the possible changes of one volume's object, in order.
var stories = map[string][]option{
	"create":                           {},
	"create, expand":                   {of("3Gi")},
	"create, delete":                   {deleting},
	"create, move away":                {on("n2")},
	"create, expand beyond the pool":   {of("99Gi")},
	"create, expand beyond, take back": {of("99Gi"), of("1Gi")},
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

func TestACrashAtAnyEffectEndsInTheSameCopy(t *testing.T) {
	for name, edits := range stories {
		t.Run(name, func(t *testing.T) {
			want, effects := play(t, edits, 0, restored)
			for k := range effects {
				got, _ := play(t, edits, k+1, restored)
				if got.Data != 0 && got.Held != "what was" {
					t.Errorf("after a crash at effect %d (%s): the copy holds %q", k+1, effects[k], got.Held)
				}
				if name == "create, move away" && got.Entry == nil {
					continue // it was not reported yet: a volume with data is kept, and reported as an orphan
				}
				if e := got.Entry; e != nil && e.Reason == v1alpha1.ReasonFound {
					e.Reason, e.Message = v1alpha1.ReasonCarved, "" // the process that comes later cannot tell which one made it
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("after a crash at effect %d (%s): %s", k+1, effects[k], diff)
				}
			}
		})
	}
}

type ending struct {
	Data  int64 // size of the data on the node
	Held  string
	Entry *v1alpha1.ReplicaStatus
}

// play runs a story with a crash at effect k, 0 for none.
func play(t *testing.T, edits []option, k int, begins ...option) (ending, []string) {
	t.Helper()
	c := &memory.Crash{At: k}
	n := newNode(volume(begins...))
	n.snapshot(t, "what was")
	n.disturb, n.fail = c, c.Effect
	n.restart()
	n.outlive(t, c)
	for _, e := range edits {
		n.edit(e)
		n.outlive(t, c)
	}
	got, _ := n.disks.Device("/dev/vg0/" + id)
	return ending{got.Size, n.disks.Read(id), n.entry(t)}, c.Effects
}

// outlive settles, with a restart if the crash comes.
func (n *node) outlive(t *testing.T, c *memory.Crash) {
	t.Helper()
	for range 10 {
		result, err := n.step(t.Context())
		if c.Dead {
			c.Dead = false
			n.restart()
			continue
		}
		if err == nil && (result.IsZero() || result.RequeueAfter == worker.RefusedDelay) {
			return
		}
	}
	t.Fatal("the volume does not settle in 10 steps")
}
