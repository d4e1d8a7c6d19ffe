package shell

import (
	"context"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

// mistake is one of a shell. None is the product.
type mistake string

const (
	none             mistake = ""
	noFsync          mistake = "no-fsync"
	notKept          mistake = "not-kept"
	guardNotTold     mistake = "guard-not-told"
	activeNotWritten mistake = "active-not-written"
	answeredEarly    mistake = "answered-early"
)

// agent returns the world of an agent with the mistake.
func (x mistake) agent(w owner.World) owner.World {
	switch x {
	case notKept:
		return forgetful{w}
	case guardNotTold:
		return silent{w}
	case activeNotWritten:
		return hasty{w}
	}
	return w
}

type forgetful struct{ owner.World }

func (forgetful) Store(journal.Kept) error { return nil }

type silent struct{ owner.World }

func (silent) OpenEpoch(context.Context, string, lineage.Epoch, provision.Content, bool) error {
	return nil
}

type hasty struct{ owner.World }

func (h hasty) Replace(ctx context.Context, v *v1alpha1.Volume) error {
	if v.Status.Ownership.Primary.Phase == v1alpha1.PrimaryActive {
		return nil
	}
	return h.World.Replace(ctx, v)
}

// calls returns the Owner that a kubelet's calls come to.
func (x mistake) calls(o staging.Owner) staging.Owner {
	if x == answeredEarly {
		return hurried{o}
	}
	return o
}

type hurried struct{ staging.Owner }

func (h hurried) Give(ctx context.Context, id string, off staging.Off) error {
	_ = h.Owner.Give(ctx, id, off)
	return nil
}

// attempts is how many schedules look for each mistake.
const attempts = 40

func TestPlantedMistakesOfAShellAreCaught(t *testing.T) {
	for x, thought := range map[mistake]string{
		noFsync:          "a file that was renamed is on the disk",
		notKept:          "the journal can follow later",
		guardNotTold:     "the guard will see the mount",
		activeNotWritten: "the next decision records it",
		answeredEarly:    "the volume is unmounted, so the pod may go",
	} {
		t.Run(string(x), func(t *testing.T) {
			for seed := range uint64(attempts) {
				if v := play(t, seed, planOf(seed), x).broken(); v != "" {
					t.Logf("schedule %d: %s", seed, v)
					return
				}
			}
			t.Errorf("%d schedules show nothing wrong with: %s", attempts, thought)
		})
	}
}
