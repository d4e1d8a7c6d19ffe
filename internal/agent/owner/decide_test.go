package owner_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// odd is a world of which a part does not work.
type odd struct {
	owner.World
	// mounts, standing and replace are the errors of those effects.
	mounts, standing, replace error
	// reading is called before the record is read.
	reading func()
	// removed: the kernel has no device of the disk's identity any more.
	removed bool
}

func (o *odd) Mounts(content provision.Content) ([]string, error) {
	if o.mounts != nil || o.removed {
		return nil, o.mounts
	}
	return o.World.Mounts(content)
}

func (o *odd) Standing(ctx context.Context) (owner.Standing, error) {
	if o.standing != nil {
		return owner.Standing{}, o.standing
	}
	return o.World.Standing(ctx)
}

func (o *odd) Replace(ctx context.Context, v *v1alpha1.Volume) error {
	if o.replace != nil {
		return o.replace
	}
	return o.World.Replace(ctx, v)
}

func (o *odd) Read(ctx context.Context, volume string) (*v1alpha1.Volume, error) {
	if o.reading != nil {
		o.reading()
	}
	return o.World.Read(ctx, volume)
}

// oddly begins a new life of the agent, in a world of which a part can be broken.
func (m *machine) oddly() *odd {
	o := &odd{}
	m.c.around = func(w owner.World) owner.World { o.World = w; return o }
	m.c.s.end(m.agent)
	m.starts()
	m.c.works(3)
	return o
}

// why is the reason for which a volume is not given or taken now, and its cause.
func why(err error) (ownership.Reason, error) {
	now := &owner.NotNowError{}
	errors.As(err, &now)
	return now.Why.Reason, now.Cause
}

func TestARecordThatChangesBeforeEachWriteIsLeftToTheNextCall(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	world := a.oddly()
	world.replace = apierrors.NewConflict(schema.GroupResource{Resource: "volumes"}, theVolume, errors.New("it changed"))
	err := a.take()
	is(t, err, provision.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "changes too often") {
		t.Errorf("got %v", err)
	}
	world.replace = nil
	must(t, a.take())
}

func TestARecordThatCannotBeWrittenEndsTheCall(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	a.oddly().replace = errFault
	err := a.take()
	is(t, err, provision.ErrUnavailable)
	is(t, err, errFault)
	if c.phase() != "Released " {
		t.Errorf("the record says %s", c.phase())
	}
}

func TestAVolumeIsNotReleasedWhileTheGuardHasItsEpochOpen(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.take())
	open := a.guarded
	a.guarded = lineage.Epoch{Number: 9, ID: "nine"} // so it does not close the other one
	is(t, a.give(), provision.ErrUnavailable)
	if c.phase() != "Active a" {
		t.Errorf("the record says %s", c.phase())
	}
	a.guarded = open
	must(t, a.give())
	if c.phase() != "Released a" {
		t.Errorf("the record says %s", c.phase())
	}
}

func TestAKubeletThatAsksOnceMoreGetsTheVolumeThatItHas(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.take())
	used := false
	must(t, a.does(func() error {
		return a.owner.Take(c.ctx, theVolume, func(context.Context) error { used = true; return nil })
	}))
	if got := changing(c.effects); !used || got != "" {
		t.Errorf("used %v, changed by %q", used, got)
	}
}

func TestAMountTableThatCannotBeReadMayHaveTheVolume(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	world := a.oddly()
	must(t, a.take())
	world.mounts = errFault
	must(t, a.give())
	if got, want := changing(c.effects), "Store Flush Store CloseEpoch Replace"; got != want {
		t.Errorf("given up by %s, want %s", got, want)
	}
}

// The guard knows the mount by the number of its device, and agrees with no release as long as it is there.
func TestAVolumeWhoseDeviceTheKernelRemovedUnderItsMountIsGivenUp(t *testing.T) {
	for name, tended := range map[string]bool{"the upkeep saw it first": true, "the kubelet asks first": false} {
		t.Run(name, func(t *testing.T) {
			c := calm(t)
			a := c.machines[0]
			world := a.oddly()
			must(t, a.take())
			world.removed = true
			if tended {
				for range 4 { // the kubelet has not asked for a while
					c.ticks(10e9)
				}
				if _, err := a.tended(t); err == nil || c.phase() != "Active a" || a.device == nil {
					t.Errorf("%v, and the record says %s", err, c.phase())
				}
			}
			must(t, a.give())
			if k := a.durable(); c.phase() != "Released a" || a.device != nil || !a.guarded.IsZero() || !k.GaveUp(k.Opened) {
				t.Errorf("the record says %s, mounted %v, guarded %v, kept %+v", c.phase(), a.device != nil, a.guarded, k)
			}
		})
	}
}

func TestWithoutTheWordOfTheGuardNoEpochBeginsAndOneEnds(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	world := a.oddly()
	world.standing = errFault
	err := a.take()
	if reason, cause := why(err); reason != ownership.LeaseLapsed || !errors.Is(cause, errFault) || c.phase() != "Released " {
		t.Errorf("%v, and the record says %s", err, c.phase())
	}
	world.standing = nil
	must(t, a.take())
	world.standing = errFault
	must(t, a.give())
}

func TestAVolumeOfAnotherKindIsNotTouched(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	v := c.current().DeepCopy()
	v.Spec.Replication = v1alpha1.Replication{Kind: v1alpha1.ReplicationSnapshots, Factor: 2}
	c.put(v)
	err := a.take()
	if _, cause := why(err); !errors.Is(cause, provision.ErrUnsupported) || changing(c.effects) != "" {
		t.Errorf("%v, changed by %q", err, changing(c.effects))
	}
}

func TestACallThatIsHeldUpForLongStillTakesTheVolume(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	world := a.oddly()
	rounds := 0
	world.reading = func() {
		for ; rounds < 20; rounds++ { // a slow API server
			c.ticks(2e9)
		}
	}
	must(t, a.take())
}
