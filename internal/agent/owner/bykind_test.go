package owner_test

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

// specs are what the node knows of Volumes.
type specs map[string]*v1alpha1.VolumeSpec

func (s specs) Spec(_ context.Context, id string) *v1alpha1.VolumeSpec { return s[id] }

// counting is an Owner of volumes with epochs that counts its calls: each of them would read and write
// the API server.
type counting struct {
	staging.Owner
	calls int
}

func (c *counting) Prepare(context.Context, string, func(context.Context) error) error {
	c.calls++
	return nil
}

func (c *counting) Fetch(context.Context, string) error { c.calls++; return nil }

func (c *counting) Take(ctx context.Context, _ string, use func(context.Context) error) error {
	c.calls++
	return use(ctx)
}

func (c *counting) Holds(ctx context.Context, _, _ string, use func(context.Context) error) error {
	c.calls++
	return use(ctx)
}

func (c *counting) Give(ctx context.Context, _ string, off staging.Off) error {
	c.calls++
	return off.Unmount(ctx)
}

// life makes all calls of a volume's life and returns how many of the steps that they hand over were
// taken.
func life(t *testing.T, o staging.Owner) (steps int, err error) {
	t.Helper()
	step := func(context.Context) error { steps++; return nil }
	ctx := t.Context()
	err = errors.Join(o.Prepare(ctx, theVolume, step), o.Fetch(ctx, theVolume), o.Take(ctx, theVolume, step),
		o.Holds(ctx, theVolume, "", step), o.Give(ctx, theVolume, staging.Off{Unmount: step}))
	return steps, err
}

func TestAVolumeGoesToTheOwnerOfItsKind(t *testing.T) {
	replicated := func(k v1alpha1.ReplicationKind) specs {
		return specs{theVolume: {Replication: v1alpha1.Replication{Kind: k}}}
	}
	for name, test := range map[string]struct {
		wishes specs
		kind   ownership.Kind
		kept   bool
		epochs bool // it goes to the Owner of volumes with epochs
	}{
		"one copy":                           {wishes: replicated("")},
		"one copy of a driver with epochs":   {wishes: replicated(""), kind: ownership.Attachments},
		"a shared disk":                      {wishes: replicated(v1alpha1.ReplicationAttachments), epochs: true},
		"copies":                             {wishes: replicated(v1alpha1.ReplicationSnapshots), epochs: true},
		"unknown, of the local driver":       {kind: driver.Local().Kind},
		"unknown, of the driver of disks":    {kind: driver.Disk().Kind, epochs: true},
		"unknown, but the node keeps epochs": {kept: true, epochs: true},
	} {
		t.Run(name, func(t *testing.T) {
			epochs := &counting{}
			o := owner.ByKind{
				Wishes: test.wishes, Default: test.kind, OneCopy: staging.OneCopy{Locks: &keyed.Locks[string]{}}, Epochs: epochs,
				Kept: func(string) (bool, error) { return test.kept, nil },
			}
			steps, err := life(t, o)
			if err != nil {
				t.Fatal(err)
			}
			want := map[bool][2]int{true: {3, 5}, false: {4, 0}}[test.epochs] // a filesystem is made ahead for one copy only
			if got := [2]int{steps, epochs.calls}; got != want {
				t.Errorf("%d steps were taken, and %d calls went to the owner of epochs; want %v", steps, epochs.calls, want)
			}
		})
	}
}

func TestAnAgentWithoutEpochsRefusesAVolumeThatNeedsThemAndLetsItGo(t *testing.T) {
	for _, kind := range []v1alpha1.ReplicationKind{v1alpha1.ReplicationAttachments, v1alpha1.ReplicationSnapshots, "Mirrors"} {
		o := owner.ByKind{Wishes: specs{theVolume: {Replication: v1alpha1.Replication{Kind: kind}}}, OneCopy: staging.OneCopy{Locks: &keyed.Locks[string]{}}}
		steps, err := life(t, o)
		if !errors.Is(err, provision.ErrUnsupported) || steps != 1 {
			t.Errorf("%s: %v, and %d steps were taken", kind, err, steps)
		}
	}
}

func TestAnAgentWithoutEpochsTakesAVolumeThatItDoesNotKnowForOneOfItsDrivers(t *testing.T) {
	o := owner.ByKind{Wishes: specs{}, Default: driver.Local().Kind, OneCopy: staging.OneCopy{Locks: &keyed.Locks[string]{}}}
	if steps, err := life(t, o); err != nil || steps != 4 {
		t.Errorf("%d steps were taken, %v", steps, err)
	}
}

func TestWhatTheNodeKeepsCannotBeReadSoNoKindIsAssumed(t *testing.T) {
	o := owner.ByKind{
		Wishes: specs{}, OneCopy: staging.OneCopy{Locks: &keyed.Locks[string]{}}, Epochs: &counting{},
		Kept: func(string) (bool, error) { return false, provision.ErrUnavailable },
	}
	if err := o.Take(t.Context(), theVolume, func(context.Context) error { t.Error("it is used"); return nil }); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("taken: %v", err)
	}
}
