package iscsi_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/provision/shared"
)

// held is a node that holds the reservation, has looked once, and counts what its target is asked to write.
func held(t *testing.T, o iscsitest.Options) (p *pair, writes func() int) {
	t.Helper()
	p = newPair(t, o, shared.Capabilities{})
	n := 0
	p.nodes["a"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		if cdb[0] == codeOut {
			n++
		}
		return execute(), nil
	}
	_, err := p.disks["a"].Look(t.Context(), disk)
	p.ok(err)
	return p, func() int { was := n; n = 0; return was }
}

func (p *pair) glance() shared.View {
	p.t.Helper()
	v, err := p.disks["a"].Glance(p.t.Context(), disk)
	p.ok(err)
	return v
}

func TestADiskThatIsWatchedHasItsTargetWriteNothing(t *testing.T) {
	p, writes := held(t, iscsitest.Options{})
	if writes() == 0 {
		t.Error("a look proves nothing")
	}
	for range 10 {
		if v := p.glance(); v.Link != ownership.Attached || !v.Holding || v.Holder != keyA || v.Registered != keyA || v.Content.Source == "" {
			t.Fatalf("%+v", v)
		}
	}
	if n := writes(); n > 0 {
		t.Errorf("in ten glances the target is asked %d times to write", n)
	}
	_, err := p.disks["a"].Look(t.Context(), disk)
	if p.ok(err); writes() == 0 {
		t.Error("a look rests on what an earlier one has proved")
	}
}

// sees compares all but the keys.
func sees(v shared.View, want ownership.Disk) bool {
	v.Keys = nil
	return reflect.DeepEqual(v.Disk, want)
}

// relogin begins the session of a node anew. Its mount takes the condition that the target reports.
func (p *pair) relogin(node string) {
	p.target.Relogin(node)
	p.target.Tell(node, -1)
}

func TestAGlanceProvesTheSessionAnewWhenAnythingHasChanged(t *testing.T) {
	holds := ownership.Disk{Link: ownership.Attached, Registered: keyA, Holder: keyA, Holding: true}
	with := func(edit func(d *ownership.Disk)) ownership.Disk { d := holds; edit(&d); return d }
	stranger := with(func(d *ownership.Disk) { d.Registered, d.Holding = 0, false })
	for name, c := range map[string]struct {
		o       iscsitest.Options
		happens func(p *pair)
		want    ownership.Disk
	}{
		"its session has logged in anew": {happens: func(p *pair) { p.relogin("a") }, want: stranger},
		"the target reports a condition": {happens: func(p *pair) { p.target.Tell("a", 1) }, want: holds},
		"another node registers":         {happens: func(p *pair) { p.target.Register(uint64(keyB) + 1) }, want: holds},
		"another node registers its key": {
			happens: func(p *pair) { p.target.Register(uint64(keyA)) }, want: with(func(d *ownership.Disk) { d.Holding = false }),
		},
		"another node takes the disk": {
			happens: func(p *pair) { p.ok(p.takeover()); p.target.Tell("a", -1) },
			want:    with(func(d *ownership.Disk) { d.Registered, d.Holder, d.Holding = 0, keyB, false }),
		},
		"the disk is cleared": {
			happens: func(p *pair) { p.target.Clear() }, want: ownership.Disk{Link: ownership.Attached},
		},
		"its reservation is of another type": {happens: func(p *pair) { p.target.Retype(3) }, want: with(func(d *ownership.Disk) { d.Holding = false })},
		"the target loses its power":         {happens: func(p *pair) { p.target.Restart(); p.target.Tell("a", -1) }, want: stranger},
		"the target forgets at that": {
			o: iscsitest.Options{Forgets: true}, happens: func(p *pair) { p.target.Restart(); p.target.Tell("a", -1) }, want: ownership.Disk{Link: ownership.Attached},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, writes := held(t, c.o)
			c.happens(p)
			writes()
			if v := p.glance(); !sees(v, c.want) {
				t.Errorf("it sees %+v", v.Disk)
			}
			keys, _ := p.target.Registrations()
			if len(keys) > 0 && writes() == 0 {
				t.Error("it takes for granted what an earlier look has proved")
			}
			if v := p.glance(); !sees(v, c.want) {
				t.Errorf("and then %+v", v.Disk)
			}
			if asks := writes() > 0; len(keys) > 0 && asks != (c.want.Registered == 0) {
				t.Errorf("and then it asks again %v", asks)
			}
		})
	}
}

func TestAProofDoesNotLastForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, writes := held(t, iscsitest.Options{})
		writes()
		var at []int
		for second := range 150 {
			if p.glance(); writes() > 0 {
				at = append(at, second)
			}
			<-time.After(time.Second)
		}
		if !slices.Equal(at, []int{60, 120}) {
			t.Errorf("proved anew after %v seconds", at)
		}
		p.disks["a"].Wait()
	})
}

// To ask for its own key raises the generation at the target. If that ended the proof of another node, each would end
// that of the other for ever.
func TestTwoWritersThatAreWatchedHaveTheirTargetWriteNothing(t *testing.T) {
	for name, o := range map[string]iscsitest.Options{"by session": {}, "by initiator, as LIO does": {ByInitiator: true}} {
		t.Run(name, func(t *testing.T) {
			p := newSeveral(t, o)
			writes := 0
			for _, node := range []string{"a", "b"} {
				p.look(node)
				p.nodes[node].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
					if cdb[0] == codeOut {
						writes++
					}
					return execute(), nil
				}
			}
			for range 10 {
				for node, key := range map[string]ownership.RawKey{"a": keyA, "b": keyB} {
					v, err := p.disks[node].Glance(t.Context(), several)
					if p.ok(err); v.Registered != key || !v.Registrants {
						t.Fatalf("%s sees %+v", node, v.Disk)
					}
				}
			}
			if writes > 0 {
				t.Errorf("in ten glances the target is asked %d times to write", writes)
			}
		})
	}
}

// Keys and reservation are the same after it.
func TestAChangeOfItsOwnEndsTheProof(t *testing.T) {
	for name, change := range map[string]func(p *pair) error{
		"it registers under the same key": func(p *pair) error { return p.disks["a"].Register(t.Context(), disk, keyA, shared.OwnMount) },
		"and the answer is lost": func(p *pair) error {
			count := p.nodes["a"].Around
			defer func() { p.nodes["a"].Around = count }()
			p.nodes["a"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
				if cdb[0] == codeOut {
					execute()
					return scsi.Result{}, errLost
				}
				return execute(), nil
			}
			if p.disks["a"].Register(t.Context(), disk, keyA, shared.OwnMount) == nil {
				t.Error("no answer is one")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, writes := held(t, iscsitest.Options{})
			p.ok(change(p))
			writes()
			if v := p.glance(); !v.Holding || writes() == 0 {
				t.Errorf("it takes for granted what an earlier look has proved: %+v", v.Disk)
			}
		})
	}
}

// The session may have ended after the target knew it.
func TestALookDuringWhichTheTargetReportsAConditionProvesNothing(t *testing.T) {
	p, writes := held(t, iscsitest.Options{})
	count := p.nodes["a"].Around
	p.nodes["a"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		if cdb[0] == codeIn && cdb[1] == 1 {
			p.nodes["a"].Around = count
			p.target.Tell("a", 1)
		}
		return count(cdb, execute)
	}
	v, err := p.disks["a"].Look(t.Context(), disk)
	if p.ok(err); !v.Holding {
		t.Errorf("%+v", v.Disk)
	}
	writes()
	if v := p.glance(); !v.Holding || writes() == 0 {
		t.Errorf("a glance rests on it: %+v", v.Disk)
	}
}

// The list of keys is as it was, and the reservation may be of another moment.
func TestAGlanceWhoseAnswersAreOfTwoMomentsProvesTheSessionAnew(t *testing.T) {
	p, writes := held(t, iscsitest.Options{})
	count, asked := p.nodes["a"].Around, false
	p.nodes["a"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		if reservation := cdb[0] == codeIn && cdb[1] == 1; reservation && !asked {
			asked = true
			_, err := p.disks["b"].Look(t.Context(), disk)
			p.ok(err)
		}
		return count(cdb, execute)
	}
	writes()
	if v := p.glance(); !v.Holding || writes() == 0 {
		t.Errorf("%+v", v.Disk)
	}
}

// A kernel that does not name the connection cannot tell that the session logged in anew. Two sessions may have
// connections of one name, one after the other.
func TestASessionThatIsNotKnownToBeTheSameIsProvedEachTime(t *testing.T) {
	f, on := attached(t, keyA)
	if _, err := f.disks.Look(t.Context(), disk); err != nil {
		t.Error(err)
	}
	for _, sees := range []func(*iscsi.Session, *iscsi.Unit){
		func(s *iscsi.Session, _ *iscsi.Unit) { s.Name = "session2" },
		func(s *iscsi.Session, _ *iscsi.Unit) { s.Connection = "" },
		func(s *iscsi.Session, _ *iscsi.Unit) { s.Connection = "" },
	} {
		on.sees = sees
		before := len(on.steps)
		if v, err := f.disks.Glance(t.Context(), disk); err != nil || v.Registered != keyA {
			t.Errorf("%+v, %v", v, err)
		}
		if !slices.ContainsFunc(on.steps[before:], func(s string) bool { return strings.HasPrefix(s, "PERSISTENT RESERVE OUT") }) {
			t.Errorf("the steps are %q", on.steps[before:])
		}
	}
}

// A step that fails leaves no proof behind that is half made, and none of an earlier session.
func TestAGlanceThatFailsProvesNothing(t *testing.T) {
	p, writes := held(t, iscsitest.Options{})
	count := p.nodes["a"].Around
	fails := func() {
		t.Helper()
		for at := range 3 { // INQUIRY, the keys, and the reservation or another question
			sent := -1
			p.nodes["a"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
				if sent++; sent == at {
					return scsi.Result{}, errLost
				}
				return count(cdb, execute)
			}
			if v, err := p.disks["a"].Glance(t.Context(), disk); err == nil || !same(v, shared.View{}) {
				t.Errorf("step %d fails: %+v, %v", at, v, err)
			}
		}
		p.nodes["a"].Around = count
	}
	fails()
	p.relogin("a")
	fails()
	writes()
	if v := p.glance(); v.Holding || writes() == 0 {
		t.Errorf("%+v", v.Disk)
	}
}
