package attacher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/controller/attacher"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/ordered"
	"berth.dev/berth/internal/provision/shared/simcloud"
)

var errTimedOut = errors.New("the operation timed out")

func TestAnAttachTakesAsLongAsTheCloudNeeds(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	d := s.disk("one", 1)
	s.order("a", d, ownership.ToAttach)
	s.settle()
	s.at(d, "a")
	if took := s.clock.Since(began); took < 13*time.Second || took > 16*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestWhatACloudDoesWrong plays one fault while a disk is attached to a node, and while it is detached.
func TestWhatACloudDoesWrong(t *testing.T) {
	for name, test := range map[string]struct {
		fault func(s *site)
		// changes are the most that may be asked for, for one order.
		changes int
	}{
		"nothing":                           {func(*site) {}, 1},
		"an answer is lost":                 {func(s *site) { s.loses("change", 1) }, 2 + 6}, // it asks until the operation has ended
		"a request is lost":                 {func(s *site) { s.drops("change", 1) }, 2},
		"three requests are lost":           {func(s *site) { s.drops("change", 3) }, 4},
		"the progress is lost":              {func(s *site) { s.loses("progress", 2) }, 1},
		"the listing is lost":               {func(s *site) { s.loses("attached", 1) }, 2},
		"an operation fails":                {func(s *site) { s.cloud.Faults().Spoil(simcloud.Spoil{Err: errTimedOut}) }, 2},
		"an operation fails, and succeeds":  {func(s *site) { s.cloud.Faults().Spoil(simcloud.Spoil{Err: errTimedOut, Happens: true}) }, 2},
		"it has too many requests":          {func(s *site) { s.cloud.Faults().Throttle(time.Minute) }, 2},
		"its listings are an hour old":      {func(s *site) { s.cloud.Faults().Delay(time.Hour) }, 1000},
		"its listings are five seconds old": {func(s *site) { s.cloud.Faults().Delay(5 * time.Second) }, 1},
		"the controller is replaced at once": {func(s *site) {
			if _, err := s.controller.Carry(s.t.Context(), "a"); err != nil {
				s.t.Fatal(err)
			}
			s.restart()
		}, 2 + 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, simcloud.Config{Lag: time.Second}, "a", "b")
			d := s.disk("one", 2)
			s.order("b", d, ownership.ToAttach)
			s.settle()
			for _, each := range []struct {
				wish ownership.Wish
				at   []string
			}{{ownership.ToAttach, []string{"a", "b"}}, {ownership.ToDetach, []string{"b"}}} {
				s.clock.Step(time.Minute) // a pod has run
				before := s.cloud.Tally().Calls["change"]
				s.order("a", d, each.wish)
				test.fault(s)
				s.settle()
				s.at(d, each.at...)
				if n := s.cloud.Tally().Calls["change"] - before; n > test.changes {
					t.Errorf("%v: %d changes were asked for", each.wish, n)
				}
				s.cloud.Faults().Fail(nil)
				s.cloud.Faults().Delay(0)
			}
			if n := s.cloud.Tally().Early; n > 0 {
				t.Errorf("the cloud was asked %d times before the time that it had named", n)
			}
		})
	}
}

// loses lets the answers to calls be lost, and drops the calls themselves.
func (s *site) loses(call string, times int) { s.fails(call, true, times) }
func (s *site) drops(call string, times int) { s.fails(call, false, times) }

func (s *site) fails(call string, after bool, times int) {
	s.cloud.Faults().Fail(func(what, _ string, done bool) error {
		if what != call || done != after || times == 0 {
			return nil
		}
		times--
		return errTimedOut
	})
}

func TestOrdersThatComeDuringAnOperationAreCarriedOutInOne(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	var disks []shared.Disk
	for i := range 9 {
		d := s.disk(fmt.Sprint(i), 1)
		disks = append(disks, d)
		s.order("a", d, ownership.ToAttach)
		if _, err := s.controller.Carry(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	s.settle()
	for _, d := range disks {
		s.at(d, "a")
	}
	if tally := s.cloud.Tally(); tally.Calls["change"] != 2 || tally.Largest != 8 {
		t.Errorf("%d operations, the largest of %d disks", tally.Calls["change"], tally.Largest)
	}
}

func TestADiskThatTheCloudRefusesHoldsNoOtherUp(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	good, gone, more := s.disk("good", 1), s.disk("gone", 1), s.disk("more", 1)
	for _, d := range []shared.Disk{good, gone, more} {
		s.order("a", d, ownership.ToAttach)
	}
	if err := s.cloud.Delete(t.Context(), gone.Handle); err != nil {
		t.Fatal(err)
	}
	s.settle()
	s.at(good, "a")
	s.at(more, "a")
	if o := s.desk.has["a"][gone.Handle]; o.State != ownership.Refused || !strings.Contains(o.Problem, "no disk") {
		t.Errorf("the order of the disk that is gone is %v: %q", o.State, o.Problem)
	}
}

func TestABatchBeyondTheSlotsIsFilledAsFarAsTheyGo(t *testing.T) {
	s := newSite(t, simcloud.Config{Slots: 3}, "a")
	attached, refused := 0, 0
	for i := range 5 {
		s.order("a", s.disk(fmt.Sprint(i), 1), ownership.ToAttach)
	}
	s.settle()
	for _, o := range s.desk.has["a"] {
		switch o.State {
		case ownership.Carried:
			attached++
		case ownership.Refused:
			refused++
		}
	}
	if attached != 3 || refused != 2 {
		t.Errorf("%d are attached and %d refused", attached, refused)
	}
}

func TestManyNodesShareTheRequestsThatACloudTakes(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("n%02d", i))
	}
	s := newSite(t, simcloud.Config{Requests: 50, Window: 3 * time.Minute}, names...)
	var disks []shared.Disk
	for _, n := range names {
		d := s.disk(n, 1)
		disks = append(disks, d)
		s.order(n, d, ownership.ToAttach)
	}
	s.settle()
	for i, n := range names {
		s.at(disks[i], n)
	}
	// 50 requests in a window: forty made the disks.
	if tally := s.cloud.Tally(); tally.Early > 0 || tally.Throttled > 2 {
		t.Errorf("%d requests were refused, %d of them before the time that the cloud had named", tally.Throttled, tally.Early)
	}
}

func TestADetachIsNotBelievedForAListingAlone(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	d := s.disk("one", 1)
	s.order("a", d, ownership.ToAttach)
	s.settle()
	s.cloud.Faults().Delay(time.Hour) // all listings are from before the attach
	s.order("a", d, ownership.ToDetach)
	s.fails("change", false, 3)
	for range 3 {
		again, err := s.controller.Carry(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		s.clock.Step(again)
		if v := s.looks("a", d); v.Link != ownership.Attaching {
			t.Errorf("the node sees %v", v.Link)
		}
	}
	s.settle()
	s.at(d)
}

func TestAnAttachmentWithoutAnOrderIsLetGoByItsNode(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	d := s.disk("one", 1)
	s.cloud.Faults().Stray("a", d.Handle)
	if v := s.looks("a", d); v.Link != ownership.AttachFailed || v.Problem == "" {
		t.Errorf("the node sees %v, with the problem %q", v.Link, v.Problem)
	}
	s.settle()
	if got := s.cloud.At(d.Handle); len(got) != 1 {
		t.Errorf("a controller has detached what no node has let go of")
	}
	s.order("a", d, ownership.ToDetach)
	s.settle()
	s.at(d)
}

// forgetful is a node whose agent dies before it places an order.
type forgetful struct{ side }

func (forgetful) Place(context.Context, shared.Disk, ownership.Wish) error { return errDied }

func TestANodeThatDiesBeforeItsOrderHasHiddenNothing(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	mine, stray := s.disk("one", 1), s.disk("two", 1)
	s.order("a", mine, ownership.ToAttach)
	s.settle()
	s.cloud.Faults().Stray("a", stray.Handle)
	for _, d := range []shared.Disk{mine, stray} {
		dying := ordered.New(s.cloud.Machine("a"), forgetful{side{s.desk, "a"}}, s.clock)
		if err := dying.Detach(t.Context(), d); !errors.Is(err, errDied) {
			t.Fatalf("got %v", err)
		}
		if v := s.looks("a", d); v.Link == ownership.Detached {
			t.Errorf("disk %s is attached, and its node sees none", d.Handle)
		}
		s.order("a", d, ownership.ToDetach)
		s.settle()
		s.at(d)
	}
}

// A listing from before the attach would agree with a detach that did nothing.
func TestADetachThatACloudOnlySaysItHasMadeIsMadeAgain(t *testing.T) {
	for _, lag := range []time.Duration{0, time.Hour} {
		s := newSite(t, simcloud.Config{}, "a")
		d := s.disk("one", 1)
		s.order("a", d, ownership.ToAttach)
		s.settle()
		s.cloud.Faults().Delay(lag)
		s.order("a", d, ownership.ToDetach)
		s.cloud.Faults().Spoil(simcloud.Spoil{Silent: true})
		s.settle()
		s.at(d)
	}
}

func TestADiskIsAttachedWhileACloudDoesNotList(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	off, on := s.disk("one", 1), s.disk("two", 1)
	s.order("a", off, ownership.ToAttach)
	s.settle()
	s.loses("attached", 1<<20)
	s.order("a", off, ownership.ToDetach)
	s.order("a", on, ownership.ToAttach)
	for s.desk.has["a"][on.Handle].State != ownership.Carried {
		again, err := s.controller.Carry(t.Context(), "a")
		if err != nil || s.clock.Since(began) > time.Hour {
			t.Fatalf("the order is %v after %v: %v", s.desk.has["a"][on.Handle].State, s.clock.Since(began), err)
		}
		s.clock.Step(again)
	}
	if _, placed := s.desk.has["a"][off.Handle]; !placed {
		t.Error("a disk is said to be detached, and no listing has agreed")
	}
}

func TestAnOldOrderIsNotCarriedOut(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	d := s.disk("one", 1)
	s.order("a", d, ownership.ToAttach)
	s.settle()
	s.order("a", d, ownership.ToDetach)
	old := &past{desk: s.desk}
	old.orders, _ = s.desk.Orders(t.Context(), "a")
	s.order("a", d, ownership.ToAttach)
	late := attacher.New(s.cloud, old, s.clock)
	for range 10 {
		again, err := late.Carry(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		s.clock.Step(again)
	}
	s.settle()
	s.looks("a", d)
	s.at(d, "a")
	if n := s.cloud.Tally().Calls["change"]; n != 2 {
		t.Errorf("%d changes were asked for", n)
	}
}

// past has the orders of a while ago, as a cache has.
type past struct {
	*desk
	orders []attacher.Order
}

func (p *past) Orders(context.Context, string) ([]attacher.Order, error) { return p.orders, nil }

func TestADiskThatIsTakenAwayIsAttachedAnew(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	d := s.disk("one", 1)
	s.order("a", d, ownership.ToAttach)
	s.settle()
	s.cloud.Faults().Lose("a", d.Handle)
	s.clock.Step(time.Hour) // the controller's word is old: the node waits for the device from when it hears of it
	n := s.node("a")
	looks := func(want ownership.Link) {
		t.Helper()
		if v, err := n.Look(t.Context(), d); err != nil || v.Link != want || (v.Problem == "") != (want == ownership.Attaching) {
			t.Errorf("the node sees %v, with the problem %q, error %v, want %v", v.Link, v.Problem, err, want)
		}
	}
	looks(ownership.Attaching)
	s.clock.Step(3 * time.Minute)
	looks(ownership.AttachFailed)
	s.order("a", d, ownership.ToDetach)
	s.settle()
	s.order("a", d, ownership.ToAttach)
	s.settle()
	s.at(d, "a")
}

// TestANodeThatWantsADiskBackGetsIt: it orders an attach after a detach, at each second of the detach.
func TestANodeThatWantsADiskBackGetsIt(t *testing.T) {
	for after := range 20 {
		s := newSite(t, simcloud.Config{Appear: time.Second}, "a")
		d := s.disk("one", 1)
		s.order("a", d, ownership.ToAttach)
		s.settle()
		s.order("a", d, ownership.ToDetach)
		for range after {
			if _, err := s.controller.Carry(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			s.clock.Step(time.Second)
		}
		s.order("a", d, ownership.ToAttach)
		if v := s.looks("a", d); v.Link != ownership.Attaching {
			t.Errorf("after %d s the node sees %v before it has an answer", after, v.Link)
		}
		s.settle()
		s.looks("a", d) // the kernel had forgotten the device, and looks for it
		s.clock.Step(time.Second)
		s.at(d, "a")
	}
}

func TestNothingIsAttachedToAMachineThatIsGone(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a", "b")
	d := s.disk("one", 2)
	s.order("a", d, ownership.ToAttach)
	s.settle()
	s.cloud.RemoveMachine("a")
	s.order("a", d, ownership.ToDetach)
	s.order("b", d, ownership.ToAttach)
	s.settle()
	s.at(d, "b")
}

func TestADiskOfAnotherIdentityIsNoDeviceOfTheVolume(t *testing.T) {
	s := newSite(t, simcloud.Config{}, "a")
	d := s.disk("one", 1)
	d.Identity = "wwn:other"
	s.order("a", d, ownership.ToAttach)
	s.settle()
	if _, err := s.node("a").Look(t.Context(), d); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("got %v", err)
	}
}
