package ownership_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

func epoch(number uint64) lineage.Epoch { return lineage.Epoch{Number: number, ID: "later"} }

// every calls show with each record of three nodes, of which each has opened an epoch or none, in any order, and has an
// entry or none.
func every(show func(v *Volume)) {
	names, orders := []string{"a", "b", "c"}, [][3]uint64{{2, 3, 4}, {2, 4, 3}, {3, 2, 4}, {3, 4, 2}, {4, 2, 3}, {4, 3, 2}}
	for code := range 5 * 5 * 5 * 8 {
		for _, order := range orders {
			v := volume(many, func(v *Volume) { v.Primary, v.Replicas = Primary{}, nil })
			phases := [3]int{code % 5, code / 5 % 5, code / 25 % 5}
			for at := uint64(2); at <= 4; at++ {
				i := slices.Index(order[:], at)
				if phase := Phase(phases[i] - 1); phase >= Released {
					writing(names[i], epoch(at), phase)(v)
					v.FenceRequest = FenceRequest{Executor: names[(i+1)%3], Epoch: epoch(at)}
				}
			}
			for i, n := range names {
				if code/125&(1<<i) != 0 {
					v.Replicas = append(v.Replicas, Replica{Node: n, State: Ready})
				}
			}
			show(v)
		}
	}
}

func TestAWriterIsReadAsItWasStored(t *testing.T) {
	every(func(v *Volume) {
		before := *v
		before.Writers = slices.Clone(v.Writers)
		stored := v.Stored()
		for _, node := range []string{"a", "b", "c", "d"} {
			seen, kept := v.On(node), stored.On(node)
			if seen.Primary.Node != node || kept.Primary.Node != node {
				t.Fatalf("about %s the record is that of %s, and stored of %s", node, seen.Primary.Node, kept.Primary.Node)
			}
			_, has := v.Replica(node)
			forgotten := !has && !seen.Primary.Phase.Open() && seen.Epoch != stored.Epoch
			if forgotten && !kept.Epoch.IsZero() {
				t.Fatalf("the epoch %v of %s, which has no entry, is kept", kept.Epoch, node)
			}
			if !forgotten && (seen.Primary != kept.Primary || seen.Epoch != kept.Epoch || seen.FenceRequest != kept.FenceRequest) {
				t.Fatalf("of %s is kept: %+v", node, kept)
			}
			if !reflect.DeepEqual(stored, kept.Stored()) {
				t.Fatalf("what is known about %s is not stored as it was: %s", node, cmp.Diff(stored, kept.Stored()))
			}
			if !reflect.DeepEqual(stored, seen.Stored()) {
				t.Fatalf("who is looked at changes what is stored: %s", cmp.Diff(stored, seen.Stored()))
			}
		}
		if !reflect.DeepEqual(&before, v) {
			t.Fatalf("the record that was read has changed: %s", cmp.Diff(&before, v))
		}
		for i, w := range stored.Writers {
			if w.Epoch.Number >= stored.Epoch.Number || i > 0 && w.Primary.Node <= stored.Writers[i-1].Primary.Node {
				t.Fatalf("stored are %+v", stored)
			}
		}
	})
}

func TestTheRecordOfOneWriterStaysAsItIs(t *testing.T) {
	for _, v := range []*Volume{volume(), volume(owned(Active), shared)} {
		if v.On("b") != v || v.Stored() != v {
			t.Error("it is another record")
		}
	}
	if v := volume(many); !reflect.DeepEqual(v, v.Stored()) || !reflect.DeepEqual(v, v.On("b").Stored()) {
		t.Errorf("of one writer is stored: %+v", v.Stored())
	}
	if (*Volume)(nil).On("a") != nil {
		t.Error("there is a record where there was none")
	}
	if v := pair(Active); v.On("b") != v {
		t.Error("the newest writer's view is another record")
	}
}

func TestWritersAreListedByName(t *testing.T) {
	v := volume(many, writing("c", e2, Active), writing("b", e3, Preparing))
	if got := v.Writing(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("%v write", got)
	}
	var all []string
	for _, w := range v.AllWriters() {
		all = append(all, w.Primary.Node)
	}
	if !slices.Equal(all, []string{"a", "b", "c"}) {
		t.Errorf("%v have opened an epoch", all)
	}
	if v := volume(many, func(v *Volume) { v.Primary = Primary{} }); len(v.AllWriters()) != 0 {
		t.Errorf("%v have opened the epoch that is nobody's", v.AllWriters())
	}
	if v := volume(owned(Active), shared); !slices.Equal(v.Writing(), []string{"a"}) {
		t.Errorf("of a volume with one writer %v write", v.Writing())
	}
}

func TestANodeOpensAnEpochBesideTheOthers(t *testing.T) {
	v := volume(many, writing("a", e2, Active), func(v *Volume) { v.Clean = true })
	wipe := LeftByWipe(Key{Node: "x", Epoch: epoch(7)})
	tests := map[string]struct {
		edit func(*NodeFacts)
		want uint64
	}{
		"newer than all in the record":     {reserved(Key{}, ofA), 3},
		"newer than any key at the disk":   {raw(wipe), 8},
		"newer than the holder's":          {heldBy(wipe, false), 8},
		"newer than what a peer has heard": {answers("c", func(p *Peer) { p.Copy.Promise.Epoch = epoch(5) }), 6},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := as("b", v, reserved(Key{}, ofA), tt.edit, wanted)
			_, a := NodeRules().Next(f)
			expect(t, a, verdict{Record, TakingOver})
			want := Primary{Node: "b", Boot: "boot1", Phase: Preparing}
			if n := a.Next; n.Epoch.Number != tt.want || n.Primary != want || n.On("a").Epoch != e2 || n.On("a").Primary.Phase != Active || n.Clean {
				t.Errorf("the record is %+v", n)
			}
		})
	}
	old := as("b", volume(many, writing("b", e2, Released), writing("a", e3, Active)), reserved(Key{}), wanted)
	if _, a := NodeRules().Next(old); a.Next == nil || a.Next.Epoch.Number != 4 || len(a.Next.Writers) != 1 {
		t.Errorf("%v: %+v", a.Verb, a.Next)
	}
}

func TestTheAgentDecidesAboutItsOwnWriter(t *testing.T) {
	v := pair(Active)
	facts := on("a", v, with(promised(v.On("a")), opened(e2), has()), mounted, reserved(ofA, ofB))
	if _, a := NodeRules().Next(facts); a.Verb != Nothing {
		t.Errorf("a writes, and so does b: %v: %s", a.Verb, a.Message())
	}
	if _, a := NodeRules().Next(on("c", v, with(has()), reserved(Key{}, ofA, ofB))); a.Verb != Nothing {
		t.Errorf("c has opened no epoch: %v: %s", a.Verb, a.Message())
	}
	if answer, _ := NodeRules().Next(on("a", v, wanted, unread)); answer.Reason != RecordUnread {
		t.Errorf("the record is unread: %v: %s", answer.Verb, answer.Message())
	}
}

// observed are a controller's facts about a disk that several nodes write: which of them are silent.
func observed(v *Volume, silent ...string) (*ControllerFacts, func(*ControllerFacts, string)) {
	f := overseeing(v, alive, lost(silent...))
	return f, func(f *ControllerFacts, writer string) {
		if slices.Contains(silent, writer) {
			f.Witnesses = []Witness{{Name: "lease"}}
		}
	}
}

func oversee(f *ControllerFacts, about func(*ControllerFacts, string)) Action {
	return Oversee(OverseeRules, f, about)
}

func TestTheControllerDecidesAboutEachWriter(t *testing.T) {
	written := entry("b", func(r *Replica) { r.Fenced = e2 })
	f, about := observed(pair(Active), "a")
	a := oversee(f, about)
	expect(t, a, verdict{Record, FenceRequested})
	if n := a.Next; n.Epoch != e3 || n.On("a").FenceRequest != (FenceRequest{Executor: "b", Epoch: e2}) || n.FenceRequest != (FenceRequest{}) {
		t.Errorf("the record is %+v", n)
	}
	f, about = observed(pair(Active, asked("b", "a"), written), "a")
	a = oversee(f, about)
	expect(t, a, verdict{Record, WriterFenced})
	if n := a.Next; n.On("a").Primary.Phase != Fenced || n.On("a").FenceRequest != (FenceRequest{}) || n.On("b").Primary.Phase != Active || !n.ExpireAt.IsZero() {
		t.Errorf("the record is %+v", n)
	}
	// A proof about one writer's epoch is none about another's: both are suspected, and a is shut out.
	f, about = observed(pair(Active, asked("c", "b"), asked("c", "a"), written), "a", "b")
	f.Nodes = append(f.Nodes, Machine{Name: "d"}, Machine{Name: "e"}, Machine{Name: "f"})
	a = oversee(f, about)
	expect(t, a, verdict{Record, WriterFenced})
	if n := a.Next; n.On("a").Primary.Phase != Fenced || n.On("b").Primary.Phase != Active || n.FenceRequest.Executor != "c" {
		t.Errorf("the record is %+v", n)
	}
	f, about = observed(a.Next, "b")
	expect(t, oversee(f, about), verdict{Wait, FenceRequested})
}

func TestALostWriterKeepsNoOtherNodeWaiting(t *testing.T) {
	free := func(v *Volume) { v.Sharing.MaxShares = 4 }
	v := pair(Active, free, asked("c", "b"), func(v *Volume) { v.Replicas[2].State = Ready })
	f, about := observed(v, "b")
	wants("d")(f)
	machine("d", there)(f)
	a := oversee(f, about)
	expect(t, a, verdict{Record, WantedHere})
	if _, has := a.Next.Replica("d"); !has || a.Next.Epoch != e3 || a.Next.On("b").FenceRequest.Executor != "c" {
		t.Errorf("the record is %+v", a.Next)
	}
	// What writes goes first, wherever it stands.
	f, about = observed(pair(Active, asked("c", "a"), entry("a", func(r *Replica) { r.Unstaged = e2 })), "a")
	expect(t, oversee(f, about), verdict{Record, WriterFenced})
	f, about = observed(pair(Active, asked("c", "a"), entry("c", func(r *Replica) { r.Fenced = e3 })), "a", "b")
	f.Nodes = append(f.Nodes, Machine{Name: "d"}, Machine{Name: "e"}, Machine{Name: "f"})
	expect(t, oversee(f, about), verdict{Record, WriterFenced})
}

// All that a controller says when nothing is to be written is what it first waits for.
func TestTheFirstThatWaitsIsToldOf(t *testing.T) {
	manual := func(v *Volume) { v.Failover.Automatic = false }
	f, about := observed(pair(Active, manual, asked("c", "a")), "a", "b")
	f.Nodes = append(f.Nodes, Machine{Name: "d"}, Machine{Name: "e"}, Machine{Name: "f"})
	a := oversee(f, about)
	expect(t, a, verdict{Wait, FenceRequested})
	f, about = observed(pair(Active, manual), "b")
	a = oversee(f, about)
	expect(t, a, verdict{Wait, WordNeeded})
	if a.Node != "b" {
		t.Errorf("it is about %s", a.Node)
	}
	f, about = observed(pair(Active))
	expect(t, oversee(f, about), verdict{Nothing, Settled})
	f, _ = observed(volume(owned(Active), shared))
	expect(t, oversee(f, func(f *ControllerFacts, writer string) {
		if writer != "a" || f.Record.Primary.Node != "a" {
			t.Errorf("it is asked about %q", writer)
		}
	}), verdict{Nothing, Settled})
}

// The record of c comes from a backup: it does not know that c writes.
func TestAControllerAsksAboutWritersThatTheRecordForgot(t *testing.T) {
	p := Promise{Epoch: e3, Primary: "c", Boot: "boot1"}
	tells := func(c *Copy) { c.Promise, c.Opened = p, e3 }
	f, about := observed(volume(many, writing("a", e2, Active)))
	of("c", func(peer *Peer) { tells(&peer.Copy) })(f)
	a := oversee(f, about)
	expect(t, a, verdict{Record, RecordBehind})
	if n := a.Next; n.Epoch != e3 || n.Primary.Node != "c" || n.On("a").Epoch != e2 {
		t.Errorf("the record is %+v", n)
	}
	// It is mended before anything is decided about a: the same backup may have made a look lost.
	f, about = observed(volume(many, writing("a", e2, Active)), "a")
	of("c", func(peer *Peer) { tells(&peer.Copy) })(f)
	expect(t, oversee(f, about), verdict{Record, RecordBehind})
	// Its epoch was over, and its writer forgotten since: c has not given it up yet.
	f, about = observed(volume(many, writing("a", e2, Active), func(v *Volume) { v.Keys = append(v.Keys, Key{Node: "c", Epoch: e3}) }))
	of("c", func(peer *Peer) { tells(&peer.Copy) })(f)
	expect(t, oversee(f, about), verdict{Nothing, Settled})
	asked := map[string]int{}
	f, _ = observed(volume(many, writing("a", e2, Active)))
	of("c", func(peer *Peer) { peer.Copy.Opened, peer.Copy.Closed = e3, e3 })(f)
	of("b", func(peer *Peer) { peer.Copy.Opened = e3 })(f)
	oversee(f, func(_ *ControllerFacts, writer string) { asked[writer]++ })
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "": 1}, asked); diff != "" {
		t.Errorf("it asks about others: %s", diff)
	}
}

func TestAnOpenWriterKeepsItsAttachment(t *testing.T) {
	both := func(edits ...func(*Volume)) *Volume {
		return pair(Active, append([]func(*Volume){func(v *Volume) { v.Factor = 1 }}, edits...)...)
	}
	// Both write, and each may be the one about which a rule decides.
	f, about := observed(both())
	a := oversee(f, about)
	expect(t, a, verdict{Record, TooManyReplicas})
	if e, _ := a.Next.Replica("c"); e.State != Removing {
		t.Errorf("%s loses its attachment", a.Node)
	}
	two := both(func(v *Volume) { v.Replicas = v.Replicas[:2] })
	f, about = observed(two)
	expect(t, oversee(f, about), verdict{Nothing, Settled})
	f, about = observed(both(func(v *Volume) { v.Replicas, v.Sharing.MaxShares = v.Replicas[:2], 2 }))
	wants("d")(f)
	machine("d", there)(f)
	expect(t, oversee(f, about), verdict{Wait, NoFreeShare})
	f, about = observed(both(yields, func(v *Volume) { v.Replicas = v.Replicas[:2] }))
	machine("a", inTheWay)(f)
	machine("b", inTheWay)(f)
	expect(t, oversee(f, about), verdict{Nothing, Settled})
	f, about = observed(both(state("a", Gone), func(v *Volume) { v.Replicas = v.Replicas[:2] }))
	expect(t, oversee(f, about), verdict{Nothing, Settled})
}

// b is lost, and is not shut out yet. The attachment that was made in its place stays.
func TestTheReplacementOfALostWriterIsNotOneTooMany(t *testing.T) {
	v := pair(Active, asked("a", "b"), func(v *Volume) { v.Factor, v.Failover.Automatic = 2, true })
	f, about := observed(v, "b")
	f.Peers = append(f.Peers, Peer{Node: "a", Copy: replica()})
	expect(t, oversee(f, about), verdict{Wait, FenceRequested})
	short := pair(Active, asked("a", "b"), func(v *Volume) { v.Factor, v.Replicas = 2, v.Replicas[:2] })
	f, about = observed(short, "b")
	expect(t, oversee(f, about), verdict{Record, TooFewReplicas})
	f, about = observed(pair(Active, func(v *Volume) { v.Factor = 2 }))
	expect(t, oversee(f, about), verdict{Record, TooManyReplicas})
}

func TestADiskExpiresAfterItsLastWriter(t *testing.T) {
	tests := map[string]struct {
		v    *Volume
		want verdict
	}{
		"two write":                     {pair(Active), verdict{Nothing, Settled}},
		"the older of two writes":       {pair(Released), verdict{Nothing, Settled}},
		"the older of two prepares":     {volume(many, writing("a", e2, Preparing), writing("b", e3, Fenced)), verdict{Nothing, Settled}},
		"the newer of two writes":       {volume(many, writing("a", e2, Released), writing("b", e3, Active)), verdict{Nothing, Settled}},
		"none writes":                   {volume(many, writing("a", e2, Fenced), writing("b", e3, Released)), verdict{Record, Unused}},
		"none has ever opened an epoch": {volume(many, func(v *Volume) { v.Primary = Primary{} }), verdict{Record, Unused}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, about := observed(tt.v)
			a := oversee(f, about)
			expect(t, a, tt.want)
			if a.Next != nil && a.Next.ExpireAt != now.Add(ClaimWithin+ExpireAfter) {
				t.Errorf("it expires at %v", a.Next.ExpireAt)
			}
		})
	}
	f, about := observed(pair(Released, func(v *Volume) { v.ExpireAt = time.Time{}; v.Writers[0].Primary.Phase = Released; v.ExpireAt = now }))
	expect(t, oversee(f, about), verdict{Record, Unused})
}

// The rules here write about the writers that are named, and wait about the others.
func TestWhatIsWrittenAboutOneWriterGoesBeforeWhatWaitsForAnother(t *testing.T) {
	v := pair(Active)
	for name, test := range map[string]struct {
		writes []string
		want   verdict
		about  string
		waits  Reason
	}{
		"about the first":              {[]string{"a"}, verdict{Record, WriterFenced}, "a", NoProof},
		"about the second":             {[]string{"b"}, verdict{Record, WriterFenced}, "b", NoProof},
		"about both":                   {[]string{"a", "b"}, verdict{Record, WriterFenced}, "a", NoProof},
		"about none":                   {nil, verdict{Wait, NoProof}, "a", NoProof},
		"the first waits to be mended": {[]string{"b"}, verdict{Record, WriterFenced}, "b", RecordBehind},
	} {
		rules := Chain[ControllerFacts]{{Name: "says", Decide: func(f *ControllerFacts) (Action, bool) {
			why := Why{Node: f.Record.Primary.Node, Reason: test.waits}
			if !slices.Contains(test.writes, why.Node) {
				return Action{Verb: Wait, Why: why}, why.Node != ""
			}
			why.Reason = WriterFenced
			return Action{Verb: Record, Next: f.Record, Why: why}, true
		}}}
		f, about := observed(v)
		a := Oversee(rules, f, about)
		if expect(t, a, test.want); a.Node != test.about {
			t.Errorf("%s: it is about %q", name, a.Node)
		}
	}
}
