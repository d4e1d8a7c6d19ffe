package owner

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
	"berth.dev/berth/internal/replicate/cert"
)

func TestWhetherAskingAgainHelps(t *testing.T) {
	for name, test := range map[string]struct {
		err   *NotNowError
		class error
	}{
		"another node owns it":   {&NotNowError{Why: ownership.Why{Reason: ownership.PrimaryElsewhere, Node: "b"}}, provision.ErrUnavailable},
		"no volume is known yet": {&NotNowError{Why: ownership.Why{Reason: ownership.VolumeUnknown}}, provision.ErrUnavailable},
		"there is no volume":     {&NotNowError{Refused: true, Why: ownership.Why{Reason: ownership.VolumeUnknown}}, provision.ErrNotFound},
		"it is being deleted":    {&NotNowError{Refused: true, Why: ownership.Why{Reason: ownership.VolumeDeleting}}, provision.ErrConflict},
		"the cause is final":     {&NotNowError{Cause: provision.ErrNotFound, Why: ownership.Why{Reason: ownership.RecordUnread}}, provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			for _, class := range []error{provision.ErrUnavailable, provision.ErrNotFound, provision.ErrConflict} {
				if want := errors.Is(test.class, class); errors.Is(test.err, class) != want {
					t.Errorf("it is %v: %v", class, !want)
				}
			}
			text := test.err.Error()
			if why := test.err.Why.Message(); !strings.Contains(text, why) || strings.Contains(text, "nil") {
				t.Errorf("it says %q", text)
			}
			if c := test.err.Cause; c != nil && !strings.Contains(text, c.Error()) {
				t.Errorf("it says %q, and not that %v", text, c)
			}
		})
	}
}

func TestACallWaitsOnlyWhereThatHelps(t *testing.T) {
	for name, test := range map[string]struct {
		verb    ownership.Verb
		reason  ownership.Reason
		awaited bool
	}{
		"another node has the volume": {ownership.Wait, ownership.PrimaryElsewhere, true},
		"the volume is being deleted": {ownership.Refuse, ownership.VolumeDeleting, false},
		"a pod here must end before":  {ownership.Wait, ownership.NotOwner, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{Stage: says(ownership.Action{Verb: test.verb, Why: ownership.Why{Reason: test.reason}})})
			take := func() <-chan struct{} {
				now := &NotNowError{}
				if err := b.Take(t.Context(), volume, func(context.Context) error { return nil }); !errors.As(err, &now) {
					t.Fatal(err)
				}
				return now.Changed()
			}
			changed := take()
			if (changed != nil) != test.awaited {
				t.Errorf("it is awaited: %v", changed != nil)
			}
			b.end()
			if test.awaited {
				<-changed // the test hangs if the call goes on to wait
			}
			if take() != nil {
				t.Error("a call waits for the upkeep of an agent that ends")
			}
		})
	}
}

// The upkeep may learn of a change before the call that decides has found that it must wait.
func TestAChangeDuringTheDecisionsIsNotMissed(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	b.Owner.c.Rules.Stage = ownership.Chain[ownership.NodeFacts]{{Name: "tended meanwhile", Decide: func(*ownership.NodeFacts) (ownership.Action, bool) {
		b.hint(func(h *hint) { h.endTended() })
		return ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.PrimaryElsewhere}}, true
	}}}
	now := &NotNowError{}
	if err := b.Take(t.Context(), volume, func(context.Context) error { return nil }); !errors.As(err, &now) {
		t.Fatal(err)
	}
	select {
	case <-now.Changed():
	default:
		t.Error("the call waits for another change")
	}
}

func TestAFetchOnlyHasTheVolumeTended(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	if err := b.Fetch(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	b.hint(func(h *hint) {
		if !h.wanted.Equal(noon.Add(patience)) || len(b.pokes) != 1 || b.pokes[0] != 0 || b.effects() != "" {
			t.Errorf("wanted until %v, tended after %v, after %q", h.wanted, b.pokes, b.effects())
		}
	})
}

func TestAPodGetsOnlyAVolumeThatItsNodeHasInThisBootAndInThisEpoch(t *testing.T) {
	mounted := journal.Kept{Volume: volume, Opened: two, Closed: one, Taken: journal.Taken{Epoch: two, Boot: "boot"}}
	for name, test := range map[string]struct {
		edit   func(k *journal.Kept)
		fenced bool
		fails  error
		want   error
	}{
		"it has it":                           {edit: func(*journal.Kept) {}},
		"it does not have it":                 {edit: func(k *journal.Kept) { k.Taken = journal.Taken{} }, want: provision.ErrUnavailable},
		"it had it in another boot":           {edit: func(k *journal.Kept) { k.Taken.Boot = "before" }, want: provision.ErrUnavailable},
		"it has it in an epoch that is over":  {edit: func(k *journal.Kept) { k.Closed = two }, want: provision.ErrUnavailable},
		"it has it in another epoch":          {edit: func(k *journal.Kept) { k.Opened = three }, want: provision.ErrUnavailable},
		"it is fenced":                        {edit: func(*journal.Kept) {}, fenced: true, want: errLapsed},
		"the journal that says so is unread.": {edit: func(*journal.Kept) {}, fails: errBroken, want: errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			b.world.kept, b.fenced, b.fails["Load"] = mounted, test.fenced, test.fails
			test.edit(&b.world.kept)
			used := false
			err := b.Holds(t.Context(), volume, "", func(context.Context) error { used = true; return nil })
			if !errors.Is(err, test.want) || used != (test.want == nil) {
				t.Errorf("%v, and it was used: %v", err, used)
			}
		})
	}
}

func TestWhatAPodHasIsNotAskedAgainWhenItCannotBeTold(t *testing.T) {
	for name, test := range map[string]struct {
		left  []string
		fails error
		want  error
	}{
		"only the staging path":                {left: []string{"/stage"}},
		"a pod's path":                         {left: []string{"/stage", "/pod"}, want: provision.ErrInUse},
		"a part of the mount table was unread": {left: []string{"/stage", "/pod"}, fails: errBroken},
	} {
		b := onBench(t, ofDisks, ownership.Node{})
		l := taken()
		b.world.kept = l.kept
		err := b.mayStop(t.Context(), volume, staging.Off{Left: func(context.Context) ([]string, error) { return test.left, test.fails }})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnAnswerThatCannotBeWholeIsNotGiven(t *testing.T) {
	copies := v1alpha1.Replication{Kind: v1alpha1.ReplicationSnapshots, Factor: 2}
	for name, test := range map[string]struct {
		asker string
		fails map[string]error
		may   bool
		want  error
	}{
		"a node of the record":           {asker: "b", may: true},
		"a controller":                   {asker: cert.Controllers, may: true},
		"an owner without a replica":     {asker: "o", may: true},
		"a stranger":                     {asker: "z"},
		"no one, and no node owns it":    {},
		"no such volume":                 {asker: "b", fails: map[string]error{"Read": errAbsent}},
		"the record cannot be read":      {asker: "b", fails: map[string]error{"Read": errBroken}, want: errBroken},
		"the copy cannot be read":        {asker: "b", fails: map[string]error{"State": errBroken}, want: errBroken},
		"the point cannot be held for b": {asker: "b", fails: map[string]error{"Hold": errBroken}, want: errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofCopies, ownership.Node{})
			b.pools.replica.Copy = ownership.Copy{Exists: true}
			b.world.object = recorded(copies)
			if b.world.object.Status.Ownership.Primary.Node = "o"; test.asker == "" {
				b.world.object.Status.Ownership.Primary = v1alpha1.Primary{Phase: v1alpha1.PrimaryReleased}
			}
			maps.Copy(b.fails, test.fails)
			if test.fails["Hold"] != nil {
				b.pools.replica.Points = append(b.pools.replica.Points, point(3))
				b.world.object.Status.Ownership.Replicas[1].State = v1alpha1.OwnedRemoving
			}
			p, may, err := b.Peer(t.Context(), volume, test.asker)
			if may != test.may || !errors.Is(err, test.want) || (p.Node == "a") != test.may || p.Copy.Exists != test.may {
				t.Errorf("%+v, may %v, %v", p, may, err)
			}
		})
	}
}

func TestAVolumeWithoutAttachmentsIsNoDisk(t *testing.T) {
	if _, err := Locate(&v1alpha1.Volume{}); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
