package keep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/ownership"
)

var errFull = errors.New("no space left on device")

// The next guard would not know of it.
func TestWhatCannotBeKeptIsNeitherGrantedNorSaid(t *testing.T) {
	w := newWorld(t, 1)
	open := epoch("v", 1)
	w.kept = State{Boot: "boot", Renewed: w.now(), Sets: [][]string{{"n0"}}, Open: []guard.Epoch{open}}
	k, err := New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	w.full = true
	if _, err := k.Open(epoch("w", 1)); !errors.Is(err, errFull) {
		t.Errorf("an epoch begins: %v", err)
	}
	if err := k.Close(open); !errors.Is(err, errFull) {
		t.Errorf("an epoch ends: %v", err)
	}
	if said, err := k.says([]string{"n0", "n1"}, false); !errors.Is(err, errFull) {
		t.Errorf("a renewal says %+v, %v", said, err)
	}
	if s := k.Status(); !slices.Equal(s.Open, []guard.Epoch{open}) || len(k.state.Sets) != 1 {
		t.Errorf("it has %+v open, and counts over %v", s.Open, k.state.Sets)
	}
	k.state.Open, k.state.Fenced = nil, true
	if err := k.Closed(); !errors.Is(err, errFull) || !k.Status().Fenced {
		t.Errorf("the agent's word is taken: %v", err)
	}
}

func TestARenewalThatWouldNameYetAnotherSetOfNodesIsNotSent(t *testing.T) {
	w := newWorld(t, 1)
	w.kept = State{Boot: "boot", Renewed: w.now()}
	k, err := New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	for i := range mostSets + 1 {
		_, err := k.says([]string{"n0", strings.Repeat("n", i+2)}, false)
		if (err == nil) != (i < mostSets) {
			t.Errorf("set %d: %v", i, err)
		}
	}
	if _, err := k.says([]string{"n0", "nn"}, false); err != nil || len(k.state.Sets) != mostSets {
		t.Errorf("a set that is known: %v, of %d", err, len(k.state.Sets))
	}
}

func TestARenewalIsKeptForTheNextGuard(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.watch(time.Minute)
		if kept := w.now() - w.kept.Renewed; kept > guard.RenewOpen+tick {
			t.Errorf("what is kept is %v old", kept)
		}
	})
}

// heard is the peers of a guard that remembers whom it asked.
type heard struct {
	*world
	asked []string
	then  func()
}

func (h *heard) Contacts(ctx context.Context, nodes []string) []ownership.PeerContact {
	h.asked = nodes
	if h.then != nil {
		h.then()
	}
	return h.world.Contacts(ctx, nodes)
}

func TestEachPeerIsAskedOnceAndItsAnswerCountsOnlyIfItIsKeptInTime(t *testing.T) {
	for name, tc := range map[string]struct {
		disturb func(k *Keeper, w *world)
		exempts bool
	}{
		"the API is away for all":              {func(*Keeper, *world) {}, true},
		"that cannot be kept":                  {func(_ *Keeper, w *world) { w.set(func() { w.full = true }) }, false},
		"the guard was fenced in the meantime": {func(k *Keeper, _ *world) { k.mu.Lock(); defer k.mu.Unlock(); k.state.Fenced = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			plays(t, func(w *world, ctx context.Context) {
				w.ready(ctx)
				w.die()
				for i := range w.peers {
					w.peers[i].heard = w.now() - time.Minute
				}
				w.kept.Sets = [][]string{{"n0", "n1", "n2"}, {"n0", "n2"}}
				peers := &heard{world: w}
				c := w.config()
				c.Peers = peers
				k, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
				peers.then = func() { tc.disturb(k, w) }
				k.mu.Lock()
				k.ask(ctx, k.facts())
				if !k.facts().Asking {
					t.Error("it would ask again before it has the answers")
				}
				k.mu.Unlock()
				w.watch(time.Second)
				k.mu.Lock()
				defer k.mu.Unlock()
				if (k.state.Exempted > 0) != tc.exempts || k.facts().Asking {
					t.Errorf("exempted at %v; it asks: %v", k.state.Exempted, k.facts().Asking)
				}
				if !slices.Equal(peers.asked, []string{"n1", "n2"}) {
					t.Errorf("it asks %v", peers.asked)
				}
			})
		})
	}
}

// The API server may have stored a renewal whose answer never came.
func TestNoEpochBeginsWithoutTheWatchdogThatALostRenewalMayHavePromised(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.set(func() { w.covered = false })
		e := epoch("v", 1)
		w.begin(ctx)
		if err := w.guard.Closed(); err != nil {
			t.Fatal(err)
		}
		heard := func() (at time.Duration) { w.set(func() { at = w.heard }); return at }
		said := func() (is bool) { w.set(func() { is = w.said }); return is }
		for w.watch(10 * time.Second); w.now()-heard() > tick; {
			w.watch(sampled)
		}
		w.set(func() { w.covered, w.deaf = true, true })
		if err := w.open(e); err != nil || said() {
			t.Fatalf("the lease says that there is a watchdog: %v, and the epoch: %v", said(), err)
		}
		for !said() {
			w.watch(sampled)
		}
		if err := w.closes(e); err != nil {
			t.Fatal(err)
		}
		w.watch(tick)
		w.set(func() { w.covered, w.deaf, w.away = false, false, true })
		for range 2 { // before and after a renewal that does not arrive
			_, err := w.guard.Open(epoch("v", 2))
			if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Reason != WatchdogPromised || !said() {
				t.Errorf("an epoch begins, and the lease says that it is covered (%v): %v", said(), err)
			}
			w.watch(guard.RenewIdle + tick)
		}
	})
}

func TestAGuardWithNothingOpenLeavesTheWatchdogAlone(t *testing.T) {
	w := newWorld(t, 1)
	w.kept = State{Boot: "boot", Renewed: w.now()}
	if _, err := New(w.config()); err != nil || w.opened {
		t.Errorf("it opened the watchdog: %v, %v", w.opened, err)
	}
}

func TestAStoreThatCannotBeUsedSaysSo(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := os.MkdirAll(state+".next", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := File(state).Save(State{}); err == nil {
		t.Error("a state was kept where none can be written")
	}
	var cause *os.PathError
	if _, err := File(dir).Load(); !errors.As(err, &cause) {
		t.Errorf("reading a directory: %v", err)
	}
	below := File(filepath.Join(dir, "file", "state"))
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), below.Save(State{})); err == nil || !strings.Contains(err.Error(), "mkdir") {
		t.Errorf("keeping a state below a file: %v", err)
	}
}

// gate is what holds volumes, or nothing, and remembers which may be written again.
type gate struct {
	*world
	held, stuck error
	allowed     []guard.Holding
	// meanwhile is called while the guard looks for what holds the volume.
	meanwhile func()
}

func (g *gate) Free(guard.Holding) error {
	if g.meanwhile != nil {
		g.meanwhile()
	}
	return g.held
}

func (g *gate) Allow(h guard.Holding) error {
	g.allowed = append(g.allowed, h)
	return g.stuck
}

func TestAVolumeMayBeWrittenAgainOnceNothingHoldsItAndItsEpochEndsThen(t *testing.T) {
	broken := errors.New("the device is read-only for good")
	for name, tc := range map[string]struct {
		held, stuck error
		allowed     int
		ends        bool
	}{
		"something holds it":              {held: errors.New("a process has it open")},
		"the kernel keeps it read-only":   {stuck: broken, allowed: 1},
		"nothing holds it, and it is let": {allowed: 1, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, open, other := newWorld(t, 1), epoch("v", 1), epoch("w", 1)
			w.kept = State{Boot: "boot", Renewed: w.now(), Open: []guard.Epoch{open, other}}
			writers := &gate{world: w, held: tc.held, stuck: tc.stuck}
			c := w.config()
			c.Writers = writers
			k, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Close(epoch("v", 9)); err == nil || len(writers.allowed) > 0 {
				t.Errorf("the word about another epoch ends it: %v", err)
			}
			writers.meanwhile = func() {
				writers.meanwhile = nil
				if err := k.Close(open); err == nil {
					t.Error("two calls are about one volume at a time")
				}
			}
			err = k.Close(open)
			left := []guard.Epoch{open, other}
			if tc.ends {
				left = left[1:]
			}
			if (err == nil) != tc.ends || !slices.Equal(k.Status().Open, left) || tc.stuck != nil && !errors.Is(err, broken) {
				t.Errorf("closed: %v; open is %v", err, k.Status().Open)
			}
			if len(writers.allowed) != tc.allowed {
				t.Errorf("it may be written again: %v", writers.allowed)
			}
			writers.held, writers.stuck = nil, nil
			if err := k.Close(open); err != nil {
				t.Errorf("the next try: %v", err)
			}
			if err := k.Close(epoch("unknown", 1)); err != nil || len(writers.allowed) > tc.allowed+1 {
				t.Errorf("a volume that the guard does not know: %v, %v", err, writers.allowed)
			}
		})
	}
}

func TestAnEpochThatBeginsLeavesTheOthersOpen(t *testing.T) {
	w := newWorld(t, 1)
	all := []guard.Epoch{epoch("a", 1), epoch("b", 1), epoch("c", 1)}
	w.kept = State{Boot: "boot", Renewed: w.now(), Cleared: time.Second, Open: []guard.Epoch{all[0], all[2]}}
	k, err := New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the agent may ask again
		if _, err := k.Open(all[1]); err != nil {
			t.Fatal(err)
		}
		if open := k.Status().Open; !slices.Equal(open, all) || !slices.Equal(w.kept.Open, all) {
			t.Errorf("open is %v, kept %v", open, w.kept.Open)
		}
	}
	if err := k.Closed(); err != nil || w.kept.Cleared != time.Second {
		t.Errorf("a word that the guard does not wait for: %v, and it counts from %v", err, w.kept.Cleared)
	}
}

// counted is a store that counts what it keeps.
type counted struct {
	*world
	saves int
}

func (c *counted) Save(s State) error { c.saves++; return c.world.Save(s) }

func TestTheAgentThatWasHeardLastIsKnownAndKeptOnceForTheNextGuard(t *testing.T) {
	w := newWorld(t, 1)
	w.kept = State{Boot: "boot", Fenced: true, Agent: "/before"}
	store := &counted{world: w}
	c := w.config()
	c.Store = store
	k, err := New(c)
	if err != nil || k.Agent() != "/before" {
		t.Fatalf("the agent is %q: %v", k.Agent(), err)
	}
	for saves, heard := range []string{"/before", "/agent"} {
		for range 3 { // it asks each second
			k.Heard(heard)
		}
		if k.Agent() != heard || w.kept.Agent != heard || store.saves != saves {
			t.Errorf("the agent is %q, kept is %q, %d times", k.Agent(), w.kept.Agent, store.saves)
		}
	}
}

// An administrator who asks the guard is never stopped.
func TestAProcessOfTheMachineTakesNoAgentsPlace(t *testing.T) {
	w := newWorld(t, 1)
	w.kept = State{Boot: "boot", Agent: "/agent"}
	k, err := New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	if k.Heard(""); k.Agent() != "/agent" {
		t.Errorf("the agent is %q", k.Agent())
	}
}

func TestAnAgentThatCannotBeKeptIsKnownAllTheSame(t *testing.T) {
	w := newWorld(t, 1)
	k, err := New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	w.full = true
	k.Heard("/agent")
	if k.Agent() != "/agent" || w.tells("a guard that follows this one does not know the agent's pod") != 1 {
		t.Errorf("the agent is %q, and it tells %q", k.Agent(), w.told)
	}
}
