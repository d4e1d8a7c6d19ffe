package iscsi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/provision/shared"
)

// several is the disk as one that several nodes write.
var several = with(func(d *shared.Disk) { d.ManyWriters, d.Persistent = true, true })

// newSeveral are two nodes that are registered, and the disk is reserved for both under the key of the first.
func newSeveral(t *testing.T, o iscsitest.Options) *pair {
	t.Helper()
	p := newPair(t, o, shared.Capabilities{})
	p.target.Clear()
	p.ok(p.disks["a"].Register(t.Context(), several, keyA, shared.Idle))
	p.ok(p.disks["a"].Reserve(t.Context(), several, 0, keyA))
	p.ok(p.disks["b"].Register(t.Context(), several, keyB, shared.Idle))
	return p
}

func (p *pair) look(node string) shared.View {
	p.t.Helper()
	v, err := p.disks[node].Look(p.t.Context(), several)
	p.ok(err)
	return v
}

func (p *pair) registered(want ...ownership.RawKey) {
	p.t.Helper()
	keys, holder := p.target.Registrations()
	var got []ownership.RawKey
	for _, k := range keys {
		got = append(got, ownership.RawKey(k))
	}
	if !slices.Equal(got, want) || holder != uint64(want[0]) {
		p.t.Errorf("the registrations are %#x, and the holder's is %#x; want %#x", keys, holder, want)
	}
}

// loses has the command of a number lost on its way, or its answer on its way back. count is how many were sent.
func (p *pair) loses(node string, at int, executed bool) (count *int) {
	count = new(int)
	p.nodes[node].Around = func(_ []byte, execute func() scsi.Result) (r scsi.Result, err error) {
		*count++
		if *count-1 != at {
			return execute(), nil
		}
		if executed {
			execute()
		}
		return r, errLost
	}
	return count
}

// joins does what the rules do: it looks, and makes the next call, until the disk is as it is to be.
func (p *pair) joins(node string, key ownership.RawKey, victims ...ownership.RawKey) error {
	d, ctx := p.disks[node], p.t.Context()
	var last error
	for range 8 {
		v, err := d.Look(ctx, several)
		left := slices.DeleteFunc(slices.Clone(victims), func(k ownership.RawKey) bool { return !slices.Contains(v.Keys, k) })
		switch {
		case err != nil:
		case v.Registered != key:
			err = d.Register(ctx, several, key, shared.Idle)
		case v.Holder == 0 || !v.Registrants:
			err = d.Reserve(ctx, several, v.Holder, key)
		case len(left) > 0:
			err = d.Reserve(ctx, several, left[0], key)
		default:
			return nil
		}
		if err != nil && !errors.Is(err, provision.ErrUnavailable) && !errors.Is(err, provision.ErrConflict) {
			return err
		}
		last = err
	}
	return errors.Join(errors.New("the node does not come to an end"), last)
}

// Each command is lost once on its way, and its answer once on its way back.
func TestANodeThatAsksAgainAfterALostAnswerJoinsAndShutsOut(t *testing.T) {
	for name, c := range map[string]struct {
		before func(p *pair)
		joins  ownership.RawKey
		victim ownership.RawKey
		want   []ownership.RawKey
	}{
		"it registers and reserves":   {func(p *pair) { p.target.Clear() }, keyB, 0, []ownership.RawKey{keyB}},
		"it shuts the holder out":     {func(*pair) {}, keyB, keyA, []ownership.RawKey{keyB}},
		"it shuts another one out":    {func(p *pair) { p.target.Register(uint64(keyA) + 1) }, keyB, keyA + 1, []ownership.RawKey{keyA, keyB}},
		"it takes what a wipe left":   {func(p *pair) { p.target.Retype(1) }, keyB, 0, []ownership.RawKey{keyB}},
		"an earlier session is there": {func(p *pair) { p.target.Relogin("b") }, keyB + 1, keyB, []ownership.RawKey{keyA, keyB + 1}},
	} {
		for _, o := range []iscsitest.Options{{}, {NoAbort: true}, {ByInitiator: true}} {
			for _, executed := range []bool{false, true} {
				for at := 0; ; at++ {
					p := newSeveral(t, o)
					c.before(p)
					count := p.loses("b", at, executed)
					if err := p.joins("b", c.joins, c.victim); err != nil {
						t.Fatalf("%s, %+v, command %d, executed %v: %v", name, o, at, executed, err)
					}
					p.nodes["b"].Around = nil
					p.registered(c.want...)
					if v := p.look("b"); !v.Registrants || v.Registered != c.joins || p.nodes["b"].Write("1") != nil {
						t.Fatalf("%s, %+v, command %d, executed %v: %+v, and it does not write", name, o, at, executed, v.Disk)
					}
					if *count <= at {
						break
					}
				}
			}
		}
	}
}

// One that the kernel sent again is refused the second time, because it has had its effect the first time.
func TestAChangeThatIsDoneIsNoErrorWhateverItsAnswer(t *testing.T) {
	for name, answer := range map[string]func(execute func() scsi.Result) (scsi.Result, error){
		"it is lost":                 func(execute func() scsi.Result) (scsi.Result, error) { execute(); return scsi.Result{}, errLost },
		"the command was sent twice": func(execute func() scsi.Result) (scsi.Result, error) { execute(); return execute(), nil },
		"the target aborted it": func(execute func() scsi.Result) (scsi.Result, error) {
			execute()
			return scsi.Result{Status: 0x40}, nil
		},
		"it came in time, as it does": func(execute func() scsi.Result) (scsi.Result, error) { return execute(), nil },
	} {
		for _, victim := range []ownership.RawKey{0, keyA} {
			p := newSeveral(t, iscsitest.Options{})
			if victim == 0 {
				p.target.Clear()
				p.ok(p.disks["b"].Register(t.Context(), several, keyB, shared.Idle))
			}
			p.nodes["b"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
				if cdb[0] == codeOut && (cdb[1] == 1 || cdb[1] == 5) {
					return answer(execute)
				}
				return execute(), nil
			}
			if err := p.disks["b"].Reserve(t.Context(), several, victim, keyB); err != nil {
				t.Errorf("%s, the victim is %#x: %v", name, uint64(victim), err)
			}
			p.registered(keyB)
		}
	}
}

func TestAChangeThatIsNotDoneIsAnErrorWhateverItsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		r    scsi.Result
		err  error
		want error
	}{
		"the target only claims it": {scsi.Result{}, nil, provision.ErrConflict},
		"the target refuses it":     {scsi.Result{Status: 0x18}, nil, provision.ErrConflict},
		"it is lost":                {scsi.Result{}, errLost, provision.ErrUnavailable},
		"the target is busy":        {scsi.Result{Status: 8}, nil, provision.ErrUnavailable},
	} {
		p := newSeveral(t, iscsitest.Options{})
		p.nodes["b"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
			if cdb[0] == codeOut && cdb[1] == 5 {
				return c.r, c.err
			}
			return execute(), nil
		}
		if err := p.disks["b"].Reserve(t.Context(), several, keyA, keyB); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		p.registered(keyA, keyB)
	}
}

func TestANodeThatIsShutOutWhileItShutsOutLearnsThat(t *testing.T) {
	p := newSeveral(t, iscsitest.Options{})
	p.nodes["b"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		r := execute()
		if cdb[0] == codeOut && cdb[1] == 5 {
			p.ok(p.disks["a"].Register(t.Context(), several, keyA+1, shared.Idle))
			p.ok(p.disks["a"].Reserve(t.Context(), several, keyB, keyA+1))
		}
		return r, nil
	}
	if err := p.disks["b"].Reserve(t.Context(), several, keyA, keyB); !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), "shut out") {
		t.Errorf("%v", err)
	}
	p.registered(keyA + 1)
}

func TestANodeThatRemovesItsOwnEarlierKeyLearnsThatTheTargetRefusesIt(t *testing.T) {
	p := newSeveral(t, iscsitest.Options{ByInitiator: true})
	p.target.Relogin("b")
	p.ok(p.disks["b"].Register(t.Context(), several, keyB+1, shared.Idle))
	for range 2 {
		if err := p.disks["b"].Reserve(t.Context(), several, keyB, keyB+1); !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), "refuses it") {
			t.Errorf("%v", err)
		}
		p.registered(keyA, keyB+1)
	}
}

func TestADiskThatAnotherHasReservedIsNotReservedAnew(t *testing.T) {
	p := newSeveral(t, iscsitest.Options{})
	if err := p.disks["b"].Reserve(t.Context(), several, 0, keyB); !errors.Is(err, provision.ErrConflict) || strings.Contains(err.Error(), "registrations") {
		t.Errorf("%v", err)
	}
	p.registered(keyA, keyB)
}

func TestATargetWithoutTheReservationsOfSeveralIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		capabilities []byte
		says         string
	}{
		"it has not that type": {[]byte{0, 8, 1, 0x81, 0x02, 0, 0, 0}, "Registrants Only"},
		"it forgets them":      {[]byte{0, 8, 0, 0x80, 0x22, 0, 0, 0}, "PTPL_C"},
	} {
		p := newSeveral(t, iscsitest.Options{})
		refuses(p.nodes["b"], codeIn, 2, scsi.Result{Data: c.capabilities})
		says := func(call, text string) {
			if !strings.Contains(text, c.says) || !strings.Contains(text, "let one node write") {
				t.Errorf("%s, %s: %s", name, call, text)
			}
		}
		err := p.disks["b"].Reserve(t.Context(), several, keyA, keyB)
		if says("reserved", err.Error()); !errors.Is(err, provision.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
		p.registered(keyA, keyB)
		p.ok(p.disks["b"].Detach(t.Context(), several))
		p.ok(p.disks["b"].Attach(t.Context(), several))
		p.disks["b"].Wait()
		v := p.look("b")
		if says("attached", v.Problem); v.Link != ownership.AttachFailed {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// LIO counts a node as registered until any registration of the node is removed.
func TestASessionThatTheTargetRefusesIsNotRegisteredUntilItRegistersAgain(t *testing.T) {
	p := newSeveral(t, iscsitest.Options{ByInitiator: true})
	p.target.Relogin("b")
	p.ok(p.disks["b"].Register(t.Context(), several, keyB+1, shared.Idle))
	if v := p.look("b"); v.Registered != keyB+1 {
		t.Errorf("%+v", v.Disk)
	}
	p.ok(p.disks["a"].Reserve(t.Context(), several, keyB, keyA))
	glance, err := p.disks["b"].Glance(t.Context(), several)
	p.ok(err)
	if v := p.look("b"); v.Registered != 0 || !same(v, glance) || p.nodes["b"].Write("1") == nil {
		t.Errorf("%+v, and at a glance %+v", v.Disk, glance.Disk)
	}
	if glance, err = p.disks["b"].Glance(t.Context(), several); err != nil || glance.Registered != 0 {
		t.Errorf("and then at a glance %+v, %v", glance.Disk, err)
	}
	if err := p.disks["b"].Reserve(t.Context(), several, keyA, keyB+1); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("reserving: %v", err)
	}
	if err := p.disks["b"].Flush(t.Context(), several); err == nil {
		t.Error("a session that the target refuses has flushed")
	}
	p.ok(p.disks["b"].Register(t.Context(), several, keyB+2, shared.Idle))
	p.registered(keyA, keyB+2)
	if v := p.look("b"); v.Registered != keyB+2 || p.nodes["b"].Write("1") != nil {
		t.Errorf("%+v", v.Disk)
	}
}

// The question whether the target refuses the session releases nothing.
func TestALookAtADiskOfSeveralChangesNothing(t *testing.T) {
	for _, o := range []iscsitest.Options{{}, {ByInitiator: true}} {
		p := newSeveral(t, o)
		p.target.Register(uint64(keyA)) // which of the two sessions holds it, no answer says
		for _, n := range []string{"a", "b"} {
			p.look(n)
			p.ok(p.disks[n].Register(t.Context(), several, map[string]ownership.RawKey{"a": keyA, "b": keyB}[n], shared.Idle))
			p.look(n)
		}
		p.registered(keyA, keyB, keyA)
	}
}

func TestADiskOfSeveralThatIsWatchedHasItsTargetWriteNothing(t *testing.T) {
	p := newSeveral(t, iscsitest.Options{})
	p.look("b")
	writes := 0
	p.nodes["b"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		if cdb[0] == codeOut {
			writes++
		}
		return execute(), nil
	}
	for range 10 {
		if v, err := p.disks["b"].Glance(t.Context(), several); err != nil || !v.Registrants || v.Holding || v.Registered != keyB {
			t.Errorf("%+v, %v", v.Disk, err)
		}
	}
	if writes > 0 {
		t.Errorf("in ten glances the target is asked %d times to write", writes)
	}
}

func TestADiskOfSeveralIsFlushedByEachThatIsRegistered(t *testing.T) {
	p := newSeveral(t, iscsitest.Options{})
	for _, n := range []string{"a", "b"} {
		p.ok(p.disks[n].Flush(t.Context(), several))
	}
	p.ok(p.disks["b"].Reserve(t.Context(), several, keyA, keyB))
	if err := p.disks["a"].Flush(t.Context(), several); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("of one that was shut out: %v", err)
	}
}
