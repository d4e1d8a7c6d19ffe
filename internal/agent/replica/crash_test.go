package replica

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision/memory"
)

var errCrash = errors.New("the process ends here")

// crash ends the process at the kth effect: before it happens, or after it
// happened and before anyone hears of it. A dead process has no more effects.
type crash struct {
	at, seen int
	dead     bool
	effects  []string
}

func (c *crash) effect(name string) error {
	if c.dead {
		return errCrash
	}
	c.effects = append(c.effects, name)
	c.seen++
	if c.dead = c.seen == c.at; c.dead {
		return errCrash
	}
	return nil
}

func (c *crash) Before(_ context.Context, op memory.Operation, _ string) error {
	return c.operation("before", op)
}
func (c *crash) After(_ context.Context, op memory.Operation, _ string) error {
	return c.operation("after", op)
}

func (c *crash) operation(when string, op memory.Operation) error {
	if op == memory.Get || op == memory.Report {
		return nil // reading has no effect
	}
	return c.effect(fmt.Sprintf("%s %s", when, op))
}

// stories are what may happen to one volume, as edits of its object.
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

type ending struct {
	Data  int64 // size of what is on the node
	Entry *v1alpha1.ReplicaStatus
}

// play runs a story with a crash at effect k, 0 for none.
func play(t *testing.T, edits []option, k int) (ending, []string) {
	t.Helper()
	c := &crash{at: k}
	n := newNode(volume())
	n.disturb, n.fail = c, c.effect
	n.restart()
	n.outlive(t, c)
	for _, e := range edits {
		n.edit(e)
		n.outlive(t, c)
	}
	got, _ := n.disks.Device("/dev/vg0/" + id)
	return ending{got.Size, n.entry(t)}, c.effects
}

// outlive settles, with a restart if the crash comes.
func (n *node) outlive(t *testing.T, c *crash) {
	t.Helper()
	for range 10 {
		result, err := n.step(t.Context())
		if c.dead {
			c.dead = false
			n.restart()
			continue
		}
		if err == nil && (result.IsZero() || result.RequeueAfter == refusedDelay) {
			return
		}
	}
	t.Fatal("the volume does not settle in 10 steps")
}
