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

// full is the disk of a guard: once it is full nothing is kept any more.
type full struct {
	*world
	is bool
}

var errFull = errors.New("no space left on device")

func (f *full) Save(s State) error {
	if f.is {
		return errFull
	}
	return f.world.Save(s)
}

// The next guard would not know of it.
func TestWhatCannotBeKeptIsNeitherGrantedNorSaid(t *testing.T) {
	w := newWorld(t, 1)
	open := epoch("v", 1)
	w.kept = State{Boot: "boot", Renewed: w.now(), Sets: [][]string{{"n0"}}, Open: []guard.Epoch{open}}
	disk := &full{world: w}
	c := w.config()
	c.Store = disk
	k, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	disk.is = true
	if _, err := k.Open(epoch("w", 1), "/agent"); !errors.Is(err, errFull) {
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
	if err := k.Closed("/agent"); !errors.Is(err, errFull) || !k.Status().Fenced {
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
		disturb func(k *Keeper, disk *full)
		exempts bool
	}{
		"the API is away for all":              {func(*Keeper, *full) {}, true},
		"that cannot be kept":                  {func(_ *Keeper, disk *full) { disk.is = true }, false},
		"the guard was fenced in the meantime": {func(k *Keeper, _ *full) { k.mu.Lock(); defer k.mu.Unlock(); k.state.Fenced = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			plays(t, func(w *world, ctx context.Context) {
				w.ready(ctx)
				w.die()
				for i := range w.peers {
					w.peers[i].heard = w.now() - time.Minute
				}
				w.kept.Sets = [][]string{{"n0", "n1", "n2"}, {"n0", "n2"}}
				disk, peers := &full{world: w}, &heard{world: w}
				c := w.config()
				c.Store, c.Peers = disk, peers
				k, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
				peers.then = func() { tc.disturb(k, disk) }
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
		if err := w.guard.Closed("/agent"); err != nil {
			t.Fatal(err)
		}
		w.watch(10 * time.Second)
		w.set(func() { w.covered, w.deaf = true, true })
		if err := w.open(e); err != nil || w.said {
			t.Fatalf("the lease says that there is a watchdog: %v, and the epoch: %v", w.said, err)
		}
		for !w.said {
			w.watch(sampled)
		}
		if err := w.closes(e); err != nil {
			t.Fatal(err)
		}
		w.watch(tick)
		w.set(func() { w.covered, w.deaf, w.away = false, false, true })
		for range 2 { // before and after a renewal that does not arrive
			if _, err := w.guard.Open(epoch("v", 2), "/agent"); err == nil || w.armed {
				t.Errorf("an epoch begins that the lease says is covered (%v)", w.said)
			}
			w.watch(guard.RenewOpen + tick)
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
