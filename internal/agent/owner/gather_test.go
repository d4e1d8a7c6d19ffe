package owner

import (
	"context"
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// The guard gets the word that every epoch is closed when those are that it knows of.
func TestNoEpochBeginsWhileTheGuardIsFencedOrSilent(t *testing.T) {
	for name, test := range map[string]struct {
		standing Standing
		fails    error
		want     time.Duration
	}{
		"the guard renews":                         {Standing{SinceRenewal: time.Second}, nil, time.Second},
		"the guard renews, and waits for the word": {Standing{SinceRenewal: time.Second, Fenced: true}, nil, ownership.SelfFenceAfter},
		"the guard does not answer":                {Standing{}, errBroken, ownership.SelfFenceAfter},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := onQuietBench(t, ownership.Done)
			b.world.standing, b.fails["Standing"], b.fenced = test.standing, test.fails, true
			l, err := b.gather(t.Context(), volume, &asking{wanted: true})
			if err != nil || l.facts.SinceRenewal != test.want {
				t.Errorf("the rules are told of %v since the renewal: %v", l.facts.SinceRenewal, err)
			}
		})
	}
}

func TestTheOtherNodesOfTheRecordAreAsked(t *testing.T) {
	for name, test := range map[string]struct {
		primary string
		want    []string
	}{
		"no owner":                         {"", []string{"b", "c"}},
		"this node owns it":                {"a", []string{"b", "c"}},
		"a replica's node owns it":         {"b", []string{"b", "c"}},
		"a node without a replica owns it": {"d", []string{"b", "c", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := &ownership.Volume{Primary: ownership.Primary{Node: test.primary}, Replicas: []ownership.Replica{{Node: "a"}, {Node: "b"}, {Node: "c"}}}
			if got := others(v, "a"); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestTheNodeOfAWriterThatIsToBeShutOutIsNotAsked(t *testing.T) {
	now, before := lineage.Epoch{Number: 2, ID: "two"}, lineage.Epoch{Number: 1, ID: "one"}
	for name, test := range map[string]struct {
		kind     ownership.Kind
		phase    ownership.Phase
		asked    lineage.Epoch
		unstaged lineage.Epoch
		want     bool
	}{
		"nothing is asked for":                        {kind: ownership.Attachments, phase: ownership.Active, want: false},
		"it is to be shut out":                        {kind: ownership.Attachments, phase: ownership.Active, asked: now, want: true},
		"it was to be shut out in an earlier epoch":   {kind: ownership.Attachments, phase: ownership.Active, asked: before, want: false},
		"it was shut out":                             {kind: ownership.Attachments, phase: ownership.Fenced, want: true},
		"it was shut out, and has said that it knows": {kind: ownership.Attachments, phase: ownership.Fenced, unstaged: now, want: false},
		"it has let go":                               {kind: ownership.Attachments, phase: ownership.Released, unstaged: now, want: false},
		"it was fenced, and has data of its own":      {kind: ownership.Snapshots, phase: ownership.Fenced, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asking{}
			a.doubts(&ownership.Volume{
				Kind: test.kind, Epoch: now, Primary: ownership.Primary{Node: "b", Phase: test.phase}, FenceRequest: ownership.FenceRequest{Epoch: test.asked},
				Replicas: []ownership.Replica{{Node: "a"}, {Node: "b", Unstaged: test.unstaged}},
			})
			if a.silent["b"] != test.want || a.silent["a"] {
				t.Errorf("silent are %v", a.silent)
			}
		})
	}
}

func TestHowLongANodeThatDidNotAnswerIsTakenForSilent(t *testing.T) {
	for name, test := range map[string]struct {
		noted []time.Duration // the first time it did not answer, then it was only recalled
		moves []time.Duration // of the clock, each followed by a recall
		want  bool
	}{
		"a moment ago":                     {moves: []time.Duration{quietFor - 1}, want: true},
		"long ago":                         {moves: []time.Duration{quietFor}},
		"it was not asked again meanwhile": {noted: []time.Duration{quietFor - 1}, moves: []time.Duration{1}},
		"the clock was set back, and has come to then": {moves: []time.Duration{-time.Hour, time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			s, now, first := &silences{}, noon, &asking{unheard: []string{"b"}}
			s.note(first, now)
			for _, later := range test.noted {
				now = now.Add(later)
				s.note(first, now)
			}
			var last *asking
			for _, move := range test.moves {
				now, last = now.Add(move), &asking{}
				s.recall(last, now)
			}
			if last.silent["b"] != test.want {
				t.Errorf("silent are %v", last.silent)
			}
		})
	}
}

// hearing is a World of which only some nodes answer.
type hearing struct {
	World
	answer []string
	asked  []string
}

func (h *hearing) Ask(_ context.Context, _ string, nodes []string) (answers []ownership.Peer) {
	h.asked = slices.Clone(nodes)
	for _, node := range nodes {
		if slices.Contains(h.answer, node) {
			answers = append(answers, ownership.Peer{Node: node})
		}
	}
	return answers
}

// Each change of the record begins a chain of decisions.
func TestANodeThatDidNotAnswerIsNotAskedByTheNextChains(t *testing.T) {
	w := &hearing{answer: []string{"b"}}
	o := New(Config{Node: "a", World: w})
	began := time.Unix(1000, 0)
	chain := func(kind ownership.Kind, after time.Duration, want ...string) {
		t.Helper()
		l := &look{id: "v"}
		l.facts.Now = began.Add(after)
		l.facts.Record = &ownership.Volume{Kind: kind, Replicas: []ownership.Replica{{Node: "a"}, {Node: "b"}, {Node: "c"}}}
		(&asking{}).peers(t.Context(), o, l)
		if !slices.Equal(w.asked, want) {
			t.Errorf("after %v %q are asked, want %q", after, w.asked, want)
		}
	}
	chain(ownership.Attachments, 0, "b", "c")
	chain(ownership.Attachments, time.Second, "b")
	chain(ownership.Snapshots, time.Second, "b", "c") // each answer may tell of newer data
	chain(ownership.Attachments, 3*time.Second, "b")
	w.answer = []string{"b", "c"}
	chain(ownership.Attachments, 4*time.Second, "b", "c")
	chain(ownership.Attachments, 5*time.Second, "b", "c")
	w.answer = []string{"b"}
	chain(ownership.Attachments, 6*time.Second, "b", "c")
	chain(ownership.Attachments, -time.Hour, "b", "c") // the clock was set back
	w.answer = []string{"b", "c"}
	chain(ownership.Attachments, 10*time.Second, "b", "c")

	l := &look{id: "v"} // c was shut out, and a moment later the next epoch begins
	l.facts.Now = began.Add(11 * time.Second)
	l.facts.Record = &ownership.Volume{
		Kind: ownership.Attachments, Epoch: lineage.Epoch{Number: 1}, Primary: ownership.Primary{Node: "c", Phase: ownership.Fenced},
		Replicas: []ownership.Replica{{Node: "a"}, {Node: "b"}, {Node: "c"}},
	}
	(&asking{}).peers(t.Context(), o, l)
	chain(ownership.Attachments, 12*time.Second, "b")
	chain(ownership.Attachments, 14*time.Second, "b", "c")
}

// TestWhenNoEpochFromBeforeALapseCanGoOn: node a may have been fenced, and the record's epoch is the second.
func TestWhenNoEpochFromBeforeALapseCanGoOn(t *testing.T) {
	one, two := lineage.Epoch{Number: 1, ID: "one"}, lineage.Epoch{Number: 2, ID: "two"}
	of := func(node string) *ownership.Volume {
		return &ownership.Volume{Epoch: two, Primary: ownership.Primary{Node: node, Phase: ownership.Active}}
	}
	promised := func(e, opened, closed lineage.Epoch) ownership.Copy {
		return ownership.Copy{Promise: ownership.Promise{Epoch: e}, Opened: opened, Closed: closed}
	}
	for name, test := range map[string]struct {
		record *ownership.Volume
		copy   ownership.Copy
		lapsed bool
	}{
		"the record was not read":                         {nil, promised(two, two, two), true},
		"the epoch is another node's":                     {of("b"), promised(two, one, one), false},
		"the epoch is another node's, and not known here": {of("b"), promised(one, one, one), true},
		"the epoch is open here":                          {of("a"), promised(two, two, one), true},
		"the epoch was given up":                          {of("a"), promised(two, two, two), false},
		"the epoch was given up, and is not known here":   {of("a"), promised(one, two, two), true},
	} {
		t.Run(name, func(t *testing.T) {
			o := New(Config{Node: "a"})
			l := &look{id: "v"}
			l.facts.Record, l.facts.Copy = test.record, test.copy
			if got := o.lapsed(l); got != test.lapsed || o.mayContinue("v") == test.lapsed {
				t.Errorf("lapsed %v, an epoch may go on %v", got, o.mayContinue("v"))
			}
			l.facts.Record = nil
			if got := o.lapsed(l); got != test.lapsed {
				t.Errorf("it does not stay so: lapsed %v", got)
			}
			if o.lapse(); !o.lapsed(l) {
				t.Error("another lapse does not count")
			}
		})
	}
}
