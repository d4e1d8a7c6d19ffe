package released

import (
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
)

func raw(node string, e v1alpha1.Epoch) ownership.RawKey {
	return rawKey(v1alpha1.ReservationKey{Node: node, Epoch: e})
}

// view is of a disk that is attached.
func view(registered, holder ownership.RawKey, holding bool) shared.View {
	return shared.View{Disk: ownership.Disk{Link: ownership.Attached, Registered: registered, Holder: holder, Holding: holding}}
}

// several is of a disk whose reservation lets all registered sessions write. This one has it.
func several(registered, holder ownership.RawKey) shared.View {
	v := view(registered, holder, true)
	v.Registrants = true
	return v
}

// leftBy is the key that a wipe of a node leaves.
func leftBy(node string, e v1alpha1.Epoch) ownership.RawKey {
	return ownership.LeftByWipe(ownership.Key{Node: node, Epoch: epochOf(e)})
}

func link(l ownership.Link) shared.View { return shared.View{Disk: ownership.Disk{Link: l}} }

func TestTheNextStepFollowsFromTheLUNAndTheDisk(t *testing.T) {
	mine, theirs, stranger := raw("a", wiping), raw("b", tenancy), raw("c", v1alpha1.Epoch{Number: 1, ID: "next"})
	leftByWipe := leftBy("a", wiping)
	outcome := func(o v1alpha1.LUNWipeOutcome) func(*v1alpha1.LUN) {
		return func(l *v1alpha1.LUN) { l.Status.Wipe.Outcome = o }
	}
	wiped, cleared, failed := outcome(v1alpha1.LUNWiped), outcome(v1alpha1.LUNCleared), outcome(v1alpha1.LUNWipeFailed)
	half := func(l *v1alpha1.LUN) { l.Status.Wipe.Done = size / 2 }
	for name, tc := range map[string]struct {
		lun    func(*v1alpha1.LUN)
		view   shared.View
		want   decide.Verb
		reason string
		key    ownership.RawKey
		expect ownership.RawKey
		next   func(*v1alpha1.LUNWipe) bool
	}{
		"no wipe is ordered":      {lun: func(l *v1alpha1.LUN) { l.Status.Wipe = nil }, view: view(mine, mine, true), want: Rest, reason: NotOurs},
		"no node is named":        {lun: func(l *v1alpha1.LUN) { l.Status.Wipe.Node = "" }, view: view(mine, mine, true), want: Rest, reason: NotOurs},
		"another node is named":   {lun: func(l *v1alpha1.LUN) { l.Status.Wipe.Node = "b" }, view: view(mine, mine, true), want: Rest, reason: NotOurs},
		"it attaches the disk":    {view: link(ownership.Detached), want: Attach, reason: Attaching},
		"it waits for the attach": {view: link(ownership.Attaching), want: Wait, reason: Attaching},
		"a failed attach is another's turn": {view: link(ownership.AttachFailed), want: Record, reason: AttachFailed, next: func(w *v1alpha1.LUNWipe) bool {
			return w.Outcome == v1alpha1.LUNWipeFailed && w.Node == "a" && strings.Contains(w.Problem, "node a")
		}},
		"it registers first":                    {view: view(0, 0, false), want: Register, reason: ShuttingOut, key: mine},
		"it takes what is free":                 {view: view(mine, 0, false), want: Reserve, reason: ShuttingOut, key: mine},
		"it takes what the volume has left":     {view: view(mine, theirs, false), want: Reserve, reason: ShuttingOut, key: mine, expect: theirs},
		"it registers over an earlier key":      {view: view(raw("a", tenancy), theirs, false), want: Register, reason: ShuttingOut, key: mine},
		"an unknown holder is left alone":       {view: view(mine, stranger, false), want: Record, reason: HolderUnknown, next: func(w *v1alpha1.LUNWipe) bool { return w.Outcome == v1alpha1.LUNWipeFailed }},
		"so is one that is no key of Berth's":   {view: view(0, 42, false), want: Record, reason: HolderUnknown},
		"so is one of its own node's":           {view: view(0, raw("a", v1alpha1.Epoch{Number: 9, ID: "later"}), false), want: Record, reason: HolderUnknown},
		"a session under another key wipes not": {view: view(theirs, mine, true), want: Register, reason: ShuttingOut, key: mine},
		"nor where another node has the disk":   {view: view(mine, theirs, true), want: Reserve, reason: ShuttingOut, key: mine, expect: theirs},
		"it takes what several nodes wrote":     {view: several(mine, mine), want: Reserve, reason: ShuttingOut, key: mine, expect: mine},
		"also from another node's key":          {view: several(mine, theirs), want: Reserve, reason: ShuttingOut, key: mine, expect: theirs},
		"it wipes what it holds":                {view: view(mine, mine, true), want: Erase, reason: Wiping},
		"it goes on with what it holds":         {lun: half, view: view(mine, mine, true), want: Erase, reason: Wiping},
		"a new session registers":               {lun: half, view: view(0, mine, false), want: Register, reason: ShuttingOut, key: mine},
		"a new session takes its own back":      {lun: half, view: view(mine, mine, false), want: Reserve, reason: ShuttingOut, key: mine, expect: mine},
		"progress ends with the reservation":    {lun: half, view: view(mine, 0, false), want: Record, reason: ReservationLost, next: func(w *v1alpha1.LUNWipe) bool { return w.Done == 0 && w.Outcome == "" }},
		"also if another has it":                {lun: half, view: view(mine, theirs, false), want: Record, reason: ReservationLost, next: func(w *v1alpha1.LUNWipe) bool { return w.Done == 0 }},
		"it takes what is nobody's":             {view: view(mine, leftByWipe, false), want: Reserve, reason: ShuttingOut, key: mine, expect: leftByWipe},
		"wiped, it makes its own nobody's":      {lun: wiped, view: view(mine, mine, true), want: Register, reason: Leaving, key: leftByWipe},
		"after a restart it attaches again":     {lun: wiped, view: link(ownership.Detached), want: Attach, reason: Attaching},
		"and takes its own back":                {lun: wiped, view: view(0, mine, false), want: Register, reason: ShuttingOut, key: mine},
		"to the end":                            {lun: wiped, view: view(mine, mine, false), want: Reserve, reason: ShuttingOut, key: mine, expect: mine},
		"wiped, and taken by an unknown":        {lun: wiped, view: view(0, stranger, false), want: Record, reason: HolderUnknown},
		"wiped, and its reservation was lost":   {lun: wiped, view: view(mine, 0, false), want: Record, reason: ReservationLost, next: func(w *v1alpha1.LUNWipe) bool { return w.Outcome == v1alpha1.LUNWipeFailed }},
		"wiped, and another wipe's":             {lun: wiped, view: view(0, leftBy("b", v1alpha1.Epoch{Number: 1, ID: "other"}), false), want: Record, reason: HolderUnknown},
		"it is nobody's, and cleared":           {lun: wiped, view: view(leftByWipe, leftByWipe, true), want: Record, reason: Leaving, next: func(w *v1alpha1.LUNWipe) bool { return w.Outcome == v1alpha1.LUNCleared && w.Node == "a" }},
		"also after a restart":                  {lun: wiped, view: view(0, leftByWipe, false), want: Record, reason: Leaving, next: func(w *v1alpha1.LUNWipe) bool { return w.Outcome == v1alpha1.LUNCleared && w.Node == "a" }},
		"cleared, it detaches":                  {lun: cleared, view: view(leftByWipe, leftByWipe, true), want: Detach, reason: Leaving},
		"nothing else helps one under way":      {lun: cleared, view: shared.View{Disk: ownership.Disk{Link: ownership.Attaching, Registered: mine}}, want: Detach, reason: Leaving},
		"also what is under way":                {lun: cleared, view: link(ownership.Attaching), want: Detach, reason: Leaving},
		"detached, it takes its name off":       {lun: cleared, view: link(ownership.Detached), want: Record, reason: Left, next: func(w *v1alpha1.LUNWipe) bool { return w.Node == "" && w.Outcome == v1alpha1.LUNCleared }},
		"failed, it gives its own up":           {lun: failed, view: view(mine, mine, true), want: Register, reason: Leaving},
		"failed, it detaches":                   {lun: failed, view: view(0, stranger, false), want: Detach, reason: Leaving},
		"a failed attach is cleaned up":         {lun: failed, view: link(ownership.AttachFailed), want: Detach, reason: Leaving},
		"a deleted LUN is left":                 {lun: leaving, view: view(mine, mine, true), want: Register, reason: Leaving},
		"also one that was wiped":               {lun: func(l *v1alpha1.LUN) { wiped(l); leaving(l) }, view: view(0, 0, false), want: Detach, reason: Leaving},
	} {
		t.Run(name, func(t *testing.T) {
			l := newWorld(t).lun
			if tc.lun != nil {
				tc.lun(&l)
			}
			before := l.DeepCopy()
			got := next(&Facts{Node: "a", LUN: &l, View: tc.view})
			switch {
			case got.Verb != tc.want, got.Reason != tc.reason, got.Key != tc.key, got.Expect != tc.expect, got.Message == "":
				t.Errorf("got %v %s (%s), key %#x from %#x", got.Verb, got.Reason, got.Message, uint64(got.Key), uint64(got.Expect))
			case (got.Next != nil) != (got.Verb == Record), tc.next != nil && !tc.next(got.Next):
				t.Errorf("it records %+v", got.Next)
			case l.Status.Wipe != nil && before.Status.Wipe.Outcome != l.Status.Wipe.Outcome:
				t.Error("the facts were changed")
			}
		})
	}
	if got := next(&Facts{Node: "a"}); got.Verb != Rest {
		t.Errorf("without a LUN: %v", got.Verb)
	}
}

func TestASessionHoldsADiskOnlyWhileAllShowsIt(t *testing.T) {
	mine, theirs := raw("a", wiping), raw("b", tenancy)
	whole := ownership.Disk{Link: ownership.Attached, Registered: mine, Holder: mine, Holding: true}
	if !holds(whole, mine) {
		t.Error("the holder does not hold the disk")
	}
	for name, change := range map[string]func(d *ownership.Disk){
		"the disk is not attached":          func(d *ownership.Disk) { d.Link = ownership.Attaching },
		"the session has another key":       func(d *ownership.Disk) { d.Registered = theirs },
		"another key holds the reservation": func(d *ownership.Disk) { d.Holder = theirs },
		"another session holds it":          func(d *ownership.Disk) { d.Holding = false },
		"all registered sessions write":     func(d *ownership.Disk) { d.Registrants = true },
	} {
		d := whole
		if change(&d); holds(d, mine) {
			t.Error(name)
		}
	}
}

func TestAnEndlessMessageFitsIntoTheLUN(t *testing.T) {
	if p := problem("a", strings.Repeat("x", 2000)); len(p) != maxProblem {
		t.Errorf("it has %d bytes", len(p))
	}
}
