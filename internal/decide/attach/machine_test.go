package attach

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func toAttach(disk string) Ordered {
	return Ordered{Disk: disk, Order: ownership.Order{ID: "id-" + disk}}
}

func toDetach(disk string) Ordered {
	o := toAttach(disk)
	o.Wish = ownership.ToDetach
	return o
}

func carried(disk string) Ordered {
	o := toAttach(disk)
	o.State = ownership.Carried
	return o
}

func refused(o Ordered) Ordered {
	o.State = ownership.Refused
	return o
}

func TestWhatAControllerDoesNextAboutAMachine(t *testing.T) {
	failure, full := errors.New("the operation failed"), fmt.Errorf("%w: all slots are taken", provision.ErrNoSpace)
	ends := func(e End) Memory {
		e.Listed = true
		return Memory{Ends: map[string]End{"id-x": e}}
	}
	relist := func(e End) Memory {
		m := ends(e)
		m.Relist = noon.Add(time.Second)
		return m
	}
	for name, test := range map[string]struct {
		orders []Ordered
		memory Memory
		verb   decide.Verb
		reason string
		disks  []string
	}{
		"nothing is ordered":                                 {verb: Pause, reason: "NothingOrdered"},
		"all that was ordered is attached":                   {orders: []Ordered{carried("x")}, verb: Pause, reason: "NothingOrdered"},
		"orders of both kinds are open":                      {orders: []Ordered{toAttach("z"), carried("y"), toDetach("x")}, memory: ends(End{}), verb: Begin, reason: "Ordered", disks: []string{"z", "x"}},
		"nothing is ordered any more, and an operation runs": {memory: Memory{Operation: "o", Follow: noon}, verb: Follow, reason: "OperationRuns"},
		"an order that was answered has an end":              {orders: []Ordered{carried("x")}, memory: ends(End{Tries: 1}), verb: Pause, reason: "NothingOrdered"},
		"a detach was refused once":                          {orders: []Ordered{refused(toDetach("x"))}, verb: List, reason: "DetachOrdered"},
		"the same, and the disk is detached":                 {orders: []Ordered{refused(toDetach("x"))}, memory: ends(End{Tries: 1, Said: 1, Absent: true}), verb: Answer, reason: "Detached", disks: []string{"x"}},
		"a detach is ordered":                                {orders: []Ordered{toAttach("z"), toDetach("x")}, verb: List, reason: "DetachOrdered"},
		"a detach is ordered, and an operation runs":         {orders: []Ordered{toDetach("x")}, memory: Memory{Operation: "o", Follow: noon}, verb: Follow, reason: "OperationRuns"},
		"the cloud wants to be left alone":                   {orders: []Ordered{toAttach("x")}, memory: Memory{NotBefore: noon.Add(time.Second)}, verb: Pause, reason: "CloudBusy"},
		"the time that the cloud has named is over":          {orders: []Ordered{toAttach("x")}, memory: Memory{NotBefore: noon}, verb: Begin, reason: "Ordered", disks: []string{"x"}},
		"an operation has just begun":                        {orders: []Ordered{toAttach("x")}, memory: Memory{Operation: "o", Follow: noon.Add(time.Second)}, verb: Pause, reason: "OperationRuns"},
		"an operation has run for a while":                   {orders: []Ordered{toAttach("x")}, memory: Memory{Operation: "o", Follow: noon}, verb: Follow, reason: "OperationRuns"},
		"an attach has succeeded":                            {orders: []Ordered{toAttach("x")}, memory: ends(End{Tries: 1}), verb: Answer, reason: "Attached", disks: []string{"x"}},
		"an attach has failed once":                          {orders: []Ordered{toAttach("x")}, memory: ends(End{Tries: 1, Err: failure}), verb: Begin, reason: "Ordered", disks: []string{"x"}},
		"an attach has failed twice":                         {orders: []Ordered{toAttach("x")}, memory: ends(End{Tries: 2, Err: failure}), verb: Answer, reason: "Refused", disks: []string{"x"}},
		"an attach has failed for good":                      {orders: []Ordered{toAttach("x")}, memory: ends(End{Tries: 1, Err: full}), verb: Answer, reason: "Refused", disks: []string{"x"}},
		"a detach has failed often":                          {orders: []Ordered{toDetach("x")}, memory: ends(End{Tries: 9, Err: failure}), verb: Begin, reason: "Ordered", disks: []string{"x"}},
		"a detach has succeeded":                             {orders: []Ordered{toDetach("x")}, memory: ends(End{Tries: 1, Said: 1}), verb: List, reason: "DetachUnproven"},
		"a listing still has a detached disk":                {orders: []Ordered{toDetach("x")}, memory: relist(End{Tries: 1, Said: 1, Listings: 1}), verb: Pause, reason: "DetachUnproven"},
		"another order comes meanwhile":                      {orders: []Ordered{toDetach("x"), toAttach("y")}, memory: relist(End{Tries: 1, Said: 1, Listings: 1}), verb: Begin, reason: "Ordered", disks: []string{"y"}},
		"many listings still have a detached disk":           {orders: []Ordered{toDetach("x")}, memory: ends(End{Tries: 1, Said: 1, Listings: listings}), verb: Begin, reason: "Ordered", disks: []string{"x"}},
		"a listing has no detached disk any more":            {orders: []Ordered{toDetach("x")}, memory: ends(End{Tries: 1, Said: 1, Absent: true}), verb: Answer, reason: "Detached", disks: []string{"x"}},
		"the cloud has refused a batch":                      {orders: []Ordered{toAttach("x"), toAttach("y")}, memory: Memory{Singly: true}, verb: Begin, reason: "Ordered", disks: []string{"x"}},
		"the first of those that are tried one by one":       {orders: []Ordered{toDetach("x"), toAttach("y")}, memory: Memory{Singly: true, Ends: map[string]End{"id-x": {Listed: true, Tries: 1, Err: failure}}}, verb: Begin, reason: "Ordered", disks: []string{"y"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Machine{Now: noon, Orders: test.orders, Memory: test.memory}
			step := m.Next()
			var disks []string
			for _, o := range step.Orders {
				disks = append(disks, o.Disk)
			}
			if step.Verb != test.verb || step.Reason != test.reason || !slices.Equal(disks, test.disks) || step.Message == "" {
				t.Errorf("%s, because %s (%s), about %q", step.Verb, step.Reason, step.Message, disks)
			}
		})
	}
}

func TestACloudThatDoesNotAnswerIsAskedLessAndLess(t *testing.T) {
	m := &Machine{Now: noon}
	last := time.Duration(0)
	for range 20 {
		m.Later(0)
		pause := m.NotBefore.Sub(noon)
		if pause < last || pause > mostBackOff {
			t.Fatalf("a pause of %v follows one of %v", pause, last)
		}
		last = pause
	}
	if m.Later(time.Hour); m.NotBefore.Sub(noon) != time.Hour {
		t.Errorf("a cloud that asks for an hour gets %v", m.NotBefore.Sub(noon))
	}
}

func TestTheEndOfAnOperationIsAboutTheOrdersThatItCarriedOut(t *testing.T) {
	m := &Machine{Now: noon}
	m.Began("o", []Ordered{toAttach("x")})
	again := toAttach("x")
	again.ID = "id-later"
	m.Orders = []Ordered{again}
	m.Ended(nil)
	if step := m.Next(); step.Verb != Begin {
		t.Errorf("the order that was placed meanwhile: %s, because %s", step.Verb, step.Reason)
	}
}

func TestADiskThatDoesNotExistIsDetached(t *testing.T) {
	m := &Machine{Now: noon, Orders: []Ordered{toDetach("x")}}
	for _, verb := range []decide.Verb{List, Begin, List, Begin, List} {
		m.NotBefore = time.Time{}
		if step := m.Next(); step.Verb != verb {
			t.Errorf("%s instead of %s, because %s", step.Verb, verb, step.Reason)
		}
		if verb == Begin {
			m.Refuses(m.Orders, fmt.Errorf("%w: there is no disk", provision.ErrNotFound))
		} else {
			m.Lists(nil)
		}
	}
	if step := m.Next(); step.Verb != Answer || !step.Done {
		t.Errorf("%s, because %s", step.Verb, step.Reason)
	}
}

func TestOrdersAreCarriedOutOneByOneOnceABatchWasRefused(t *testing.T) {
	full := fmt.Errorf("%w: all slots are taken", provision.ErrNoSpace)
	m := &Machine{Now: noon, Orders: []Ordered{toAttach("x"), toAttach("y")}}
	if m.Refuses(m.Orders, full); !m.Singly || len(m.Ends) > 0 || m.NotBefore.After(noon) {
		t.Errorf("after a batch was refused: %+v", m.Memory)
	}
	if m.Refuses(m.Orders[:1], full); m.Ends["id-x"].Tries != 1 || len(m.Ends) != 1 || !m.NotBefore.After(noon) {
		t.Errorf("after an order was refused: %+v", m.Memory)
	}
	m = &Machine{Now: noon, Orders: []Ordered{toDetach("x")}, Memory: Memory{Singly: true, Relist: noon.Add(time.Second),
		Ends: map[string]End{"id-x": {Listed: true, Tries: 1, Said: 1, Listings: 1}}}}
	if step := m.Next(); step.Verb != Pause {
		t.Errorf("nothing is left to begin: %s, because %s", step.Verb, step.Reason)
	}
}

func TestTheEndOfAnOperationIsNotedOnceForEachOfItsOrders(t *testing.T) {
	m := &Machine{Now: noon, Orders: []Ordered{toAttach("x"), toAttach("y"), toAttach("z")}, Memory: Memory{Failures: 3}}
	m.Began("o", m.Orders[:2])
	m.Ended(nil)
	if m.Ends["id-x"].Tries != 1 || m.Ends["id-y"].Tries != 1 || len(m.Ends) != 2 || m.Failures != 0 || m.NotBefore.After(noon) || m.Operation != "" {
		t.Errorf("after a success: %+v", m.Memory)
	}
	m.Began("o", m.Orders[2:])
	m.Ended(map[string]error{"z": errors.New("the operation failed")})
	if m.Ends["id-z"].Err == nil || m.Failures != 1 || !m.NotBefore.After(noon) {
		t.Errorf("after a failure: %+v", m.Memory)
	}
}

func TestAnOperationThatTheCloudHasForgottenIsBegunAgain(t *testing.T) {
	m := &Machine{Now: noon, Orders: []Ordered{toAttach("x")}}
	m.Began("o", m.Orders)
	m.Forgotten()
	if step := m.Next(); step.Verb != Begin {
		t.Errorf("%s, because %s", step.Verb, step.Reason)
	}
}

func TestWhatIsAboutOrdersThatAreNoMoreIsForgotten(t *testing.T) {
	m := &Machine{Now: noon, Orders: []Ordered{toAttach("x")}, Memory: Memory{Singly: true, Ends: map[string]End{"id-x": {Tries: 1}, "id-old": {Tries: 1}}}}
	if m.Forget(); len(m.Ends) != 1 || m.Ends["id-x"].Tries != 1 || !m.Singly {
		t.Errorf("while an order is open: %+v", m.Memory)
	}
	m.Orders = nil
	if m.Forget(); len(m.Ends) > 0 || m.Singly {
		t.Errorf("without orders: %+v", m.Memory)
	}
}

// Each letter is a step about the order to detach x: l lists x, n does not, s and f are operations that say that they
// have succeeded and failed.
func TestWhatProvesThatADiskIsDetached(t *testing.T) {
	for steps, want := range map[string]bool{
		"lsn":       true,  // the listing knew of the attachment
		"lsln":      true,  // it was only late
		"nsn":       false, // it may be from before the attach
		"nsnsn":     true,  // the second operation found nothing to do
		"nfnsn":     false,
		"nsnfnsn":   false, // a failure between two successes
		"nslsn":     true,  // a listing knows of the attachment by now
		"nsnfnsnsn": true,
		"lfn":       false, // no operation has said so
		"ls":        false, // no listing has agreed
	} {
		m := &Machine{Now: noon, Orders: []Ordered{toDetach("x")}}
		for _, step := range steps {
			switch step {
			case 'l':
				m.Lists([]string{"x"})
			case 'n':
				m.Lists(nil)
			default:
				failed := map[string]error{}
				if step == 'f' {
					failed["x"] = errors.New("the operation failed")
				}
				m.Began("o", m.Orders)
				m.Ended(failed)
			}
		}
		if step := m.Next(); (step.Verb == Answer && step.Done) != want {
			t.Errorf("%s: %s, because %s", steps, step.Verb, step.Reason)
		}
	}
}
