package iscsi_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/shared"
)

// second is another unit of the disk's target, and elsewhere a unit of another target.
var (
	second    = with(func(d *shared.Disk) { d.Handle = strings.TrimSuffix(handle, "1") + "2" })
	elsewhere = with(func(d *shared.Disk) { d.Handle = "iscsi://10.0.0.9/iqn.2026-01.com.example:other/5" })
)

// when calls a function once, just before a step.
func (f *faulty) when(step string, happens func()) {
	f.fault = func(_ int, name string) error {
		if name == step && happens != nil {
			call := happens
			happens = nil
			call()
		}
		return nil
	}
}

func TestAnAttachOfACallerThatGaveUpBeginsNothing(t *testing.T) {
	f, on := faults(t, iscsitest.Options{}, nil)
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	if err := f.disks.Attach(ctx, disk); !errors.Is(err, context.Canceled) {
		t.Errorf("attaching: %v", err)
	}
	if f.disks.Wait(); len(on.steps) != 0 {
		t.Errorf("it took the steps %q", on.steps)
	}
}

// A target that forgets its reservations is refused, and its unit stays until a detach.
func TestADiskThatWasRefusedIsRefusedWhenItIsAttachedAgain(t *testing.T) {
	f, on := faults(t, iscsitest.Options{Forgets: true}, nil)
	counts := with(func(d *shared.Disk) { d.Persistent = true })
	for range 2 {
		if v := f.attach(counts); v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "forgets its reservations") {
			t.Errorf("a volume that counts on its reservations: %+v", v)
		}
	}
	if n := count(on.steps, "scan"); n != 1 {
		t.Errorf("the unit was looked for %d times", n)
	}
	if v := f.attach(disk); v.Link != ownership.Attached {
		t.Errorf("a volume that does not: %+v", v)
	}
}

// The unit may be there though this agent did not attach it: an earlier one did, or an administrator.
func TestNoReservationIsTakenOnATargetThatForgetsThemWhoeverAttachedItsUnit(t *testing.T) {
	f, _ := faults(t, iscsitest.Options{Forgets: true}, nil)
	f.attach(disk)
	counts := with(func(d *shared.Disk) { d.Persistent = true })
	for name, c := range map[string]struct {
		d        shared.Disk
		promises shared.Capabilities
		want     error
	}{
		"the volume counts on them": {counts, shared.Capabilities{}, provision.ErrUnsupported},
		"the node counts on them":   {disk, shared.Capabilities{Persistent: true}, provision.ErrUnsupported},
		"neither counts on them":    {disk, shared.Capabilities{}, nil},
	} {
		again := iscsi.New(config(f.node, c.promises))
		if err := again.Register(t.Context(), c.d, keyA, shared.Idle); err != nil {
			t.Errorf("%s: registering: %v", name, err)
		}
		err := again.Reserve(t.Context(), c.d, 0, keyA)
		if _, holder := f.target.Registrations(); !errors.Is(err, c.want) || (holder == 0) == (err == nil) {
			t.Errorf("%s: reserving: %v, and the holder's key is %#x", name, err, holder)
		}
		if err := again.Register(t.Context(), c.d, 0, shared.Idle); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADiskThatIsAttachedStaysSoWhenItIsAttachedAgainWhileItsPathIsAway(t *testing.T) {
	f, _ := attached(t, 0)
	f.target.Cut("a", true)
	if err := f.disks.Attach(t.Context(), disk); err != nil {
		t.Error(err)
	}
	f.disks.Wait()
	f.target.Cut("a", false)
	if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Link != ownership.Attached {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestTheSessionThatAnInterruptedAttachLeftIsUsedAsItIs(t *testing.T) {
	f, _ := attached(t, 0)
	if err := f.node.Remove(iscsi.Unit{}); err != nil {
		t.Fatal(err)
	}
	before := f.node.Transcript()
	if v := f.attach(disk); v.Link != ownership.Attached {
		t.Errorf("%+v", v)
	}
	if after := f.node.Transcript(); after != before {
		t.Errorf("the commands were\n%sand are\n%s", before, after)
	}
}

func TestWhileADiskIsDetachedItIsSeenToBeUnderWayAndTakesNoAttach(t *testing.T) {
	f, on := attached(t, 0)
	on.when("remove", func() {
		if v, err := f.disks.Look(t.Context(), disk); err != nil || !same(v, shared.View{Disk: ownership.Disk{Link: ownership.Attaching}}) {
			t.Errorf("a look: %+v, %v", v, err)
		}
		if err := f.disks.Attach(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "detach") {
			t.Errorf("an attach: %v", err)
		}
	})
	f.detach()
}

func TestALookDuringAnotherCallIsNoAnswer(t *testing.T) {
	f, on := attached(t, keyA)
	on.when("sync", func() {
		if v, err := f.disks.Look(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) || !same(v, shared.View{}) {
			t.Errorf("%+v, %v", v, err)
		}
	})
	if err := f.disks.Flush(t.Context(), disk); err != nil {
		t.Error(err)
	}
}

// Between the login and the search for its unit a session has none, as an interrupted attach leaves it.
func TestASessionWithoutUnitsIsLeftOverUnlessAUnitOfItsTargetIsUnderWay(t *testing.T) {
	left := shared.View{Disk: ownership.Disk{Link: ownership.AttachFailed}, Problem: "an attach was interrupted after the login"}
	for name, tc := range map[string]struct {
		step string
		call func(*testing.T, *fixture) error
		want shared.View
	}{
		"another unit of the target is attached": {"scan", func(t *testing.T, f *fixture) error { return f.disks.Attach(t.Context(), second) }, shared.View{}},
		"another unit of the target is detached": {"iscsiadm logout", func(t *testing.T, f *fixture) error { return f.disks.Detach(t.Context(), second) }, shared.View{}},
		"another unit of the target is flushed":  {"sessions", func(t *testing.T, f *fixture) error { return f.disks.Flush(t.Context(), second) }, left},
		"a unit of another target is attached":   {"sessions", func(t *testing.T, f *fixture) error { return f.disks.Attach(t.Context(), elsewhere) }, left},
	} {
		t.Run(name, func(t *testing.T) {
			f, on := attached(t, 0)
			if err := f.node.Remove(iscsi.Unit{}); err != nil {
				t.Fatal(err)
			}
			looked := false
			on.when(tc.step, func() {
				looked = true
				if v, err := f.disks.Look(t.Context(), disk); err != nil || !same(v, tc.want) {
					t.Errorf("%+v, %v; want %+v", v, err, tc.want)
				}
			})
			_ = tc.call(t, f) // it may fail: the target has no such unit
			if f.disks.Wait(); !looked {
				t.Errorf("no step %q was taken", tc.step)
			}
		})
	}
}

// hung returns a node on which the search for the disk's unit does not end before end is called.
func hung(t *testing.T) (f *fixture, on *faulty, end func()) {
	t.Helper()
	f, on = faults(t, iscsitest.Options{}, nil)
	ended := make(chan struct{})
	on.when("scan", func() { <-ended })
	if err := f.disks.Attach(t.Context(), disk); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return f, on, func() { close(ended) }
}

func TestOneCallAtATimeLogsInAtATargetOrOut(t *testing.T) {
	for name, call := range map[string]func(*testing.T, *fixture) error{
		"attach": func(t *testing.T, f *fixture) error { return f.disks.Attach(t.Context(), second) },
		"detach": func(t *testing.T, f *fixture) error { return f.disks.Detach(t.Context(), second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, on, end := hung(t)
				before := len(on.steps)
				ended := make(chan error, 1)
				go func() { ended <- call(t, f) }()
				if synctest.Wait(); len(on.steps) != before {
					t.Errorf("meanwhile it takes the steps %q", on.steps[before:])
				}
				end()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if f.disks.Wait(); len(on.steps) == before {
					t.Error("it takes no step at all")
				}
			})
		})
	}
}

// A call that waits for its turn longer than it may does nothing when the turn comes.
func TestACallThatWaitedTooLongForItsTurnTakesNoStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, on, end := hung(t)
		before := len(on.steps)
		if err := f.disks.Attach(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		third := with(func(d *shared.Disk) { d.Handle = strings.TrimSuffix(handle, "1") + "3" })
		if err := f.disks.Detach(t.Context(), third); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("detaching: %v", err)
		}
		<-time.After(time.Hour)
		end()
		f.disks.Wait()
		if v, err := f.disks.Look(t.Context(), second); err != nil || v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "in time") {
			t.Errorf("attaching: %+v, %v", v, err)
		}
		if i := slices.Index(on.steps[before:], "iscsiadm logout"); i >= 0 {
			t.Errorf("the steps are %q", on.steps[before:])
		}
	})
}

func TestAnAttachOfADiskThatAnswersTooLateFailsForThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, on := faults(t, iscsitest.Options{}, nil)
		on.when("INQUIRY", func() { <-time.After(time.Hour) })
		if v := f.attach(disk); v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "in time") {
			t.Errorf("%+v", v)
		}
	})
}

func TestALoginThatTakesTooLongIsTriedAtNoFurtherPortal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, on := faults(t, iscsitest.Options{}, nil)
		on.fault = func(_ int, step string) error {
			if step != "iscsiadm login" {
				return nil
			}
			<-time.After(time.Hour)
			return errFaulty
		}
		d := with(func(d *shared.Disk) { d.Handle = "iscsi://10.0.0.5,10.0.0.6/iqn.2026-01.com.example:array/1" })
		if v := f.attach(d); v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "in time") {
			t.Errorf("%+v", v)
		}
		if strings.Contains(f.node.Transcript(), "10.0.0.6") {
			t.Errorf("the commands are\n%s", f.node.Transcript())
		}
	})
}

func TestALookAsksFirstForTheKeyThatTheSessionHadLast(t *testing.T) {
	f, on := attached(t, keyB)
	for n := range ownership.RawKey(8) {
		f.target.Register(uint64(keyA + n))
	}
	looks := func(when string, want int) {
		t.Helper()
		before := len(on.steps)
		if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Registered != keyB {
			t.Fatalf("%+v, %v", v, err)
		}
		if asked := on.steps[before:]; count(asked, "PERSISTENT RESERVE OUT, REGISTER") != want {
			t.Errorf("%s it takes the steps %q", when, asked)
		}
	}
	looks("after the registration", 1)
	f.disks = iscsi.New(iscsi.Config{Runner: on, Kernel: on, Used: on.Used})
	looks("after a restart", 9) // the other keys are smaller
	looks("after a look", 1)
}

func count(steps []string, name string) (n int) {
	for _, step := range steps {
		if step == name {
			n++
		}
	}
	return n
}
