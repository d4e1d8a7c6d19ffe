package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

const volume = "pvc-00000000-0000-0000-0000-000000000001"

var (
	errBroken = errors.New("it is broken")
	noon      = time.Unix(43200, 0)
	one, two  = lineage.Epoch{Number: 1, ID: "one"}, lineage.Epoch{Number: 2, ID: "two"}
	three     = lineage.Epoch{Number: 3, ID: "three"}
	theLUN    = shared.Disk{Volume: volume, Handle: "lun1", Identity: "wwn:1"}
)

// script is what a test says about the effects of a node: which of them fail. It has those that were called.
type script struct {
	mu    sync.Mutex // loops have several goroutines
	had   []string
	fails map[string]error
}

func (s *script) does(effect string, of ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.had = append(s.had, strings.TrimSpace(effect+" "+fmt.Sprint(of...)))
	return s.fails[effect]
}

func (s *script) effects() string { return strings.Join(s.had, ", ") }

// failing is how an effect fails that is not noted.
func (s *script) failing(effect string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fails[effect]
}

// fail has an effect fail from now on, or not any more, while a loop runs.
func (s *script) fail(effect string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[effect] = err
}

// playedWorld is a World of which the test plays all parts.
type playedWorld struct {
	World // an effect that no test expects panics
	*script
	kept     journal.Kept
	known    bool
	beside   []journal.Kept // what the node keeps of other volumes
	object   *v1alpha1.Volume
	paths    []string // where the device is mounted
	down     []string // where a filesystem is mounted that has shut itself down
	stuck    bool     // an unmount takes nothing off
	silent   []string // nodes that do not answer
	standing Standing
	now      time.Time
	during   func() // is called with each question about the standing
	// targets are the pods' paths that the kubelet has, and begun those of pods that have begun.
	targets, begun []string
}

func (w *playedWorld) Now() time.Time  { return w.now }
func (w *playedWorld) FreshID() string { return "fresh" }

func (w *playedWorld) Load(id string) (journal.Kept, bool, error) {
	for _, k := range w.beside {
		if k.Volume == id {
			return k, true, w.failing("Load " + id)
		}
	}
	return w.kept, w.known, w.failing("Load")
}

func (w *playedWorld) Volumes() ([]string, error) {
	ids := []string{volume}
	for _, k := range w.beside {
		ids = append(ids, k.Volume)
	}
	return ids, w.failing("Volumes")
}

func (w *playedWorld) Store(k journal.Kept) error {
	err := w.does("Store")
	if err == nil {
		w.kept, w.known = k, true
	}
	return err
}

func (w *playedWorld) Erase(string) error { return w.does("Erase") }

func (w *playedWorld) Mounts(provision.Content) ([]string, error) {
	return slices.Clone(w.paths), w.failing("Mounts")
}

func (w *playedWorld) Unmount(_ context.Context, path string) error {
	if !w.stuck {
		w.paths = slices.DeleteFunc(w.paths, func(p string) bool { return p == path })
	}
	return w.does("Unmount", path)
}

func (w *playedWorld) Read(context.Context, string) (*v1alpha1.Volume, error) {
	return w.object, w.does("Read")
}

func (w *playedWorld) Replace(context.Context, *v1alpha1.Volume) error { return w.does("Replace") }

func (w *playedWorld) Ask(_ context.Context, _ string, nodes []string) (out []ownership.Peer) {
	_ = w.does("Ask", strings.Join(nodes, " "))
	for _, node := range nodes {
		if !slices.Contains(w.silent, node) {
			out = append(out, ownership.Peer{Node: node})
		}
	}
	return out
}

func (w *playedWorld) Standing(context.Context) (Standing, error) {
	if w.during != nil {
		w.during()
	}
	return w.standing, w.failing("Standing")
}

func (w *playedWorld) OpenEpoch(_ context.Context, _ string, e lineage.Epoch, _ provision.Content, _ bool) error {
	return w.does("OpenEpoch", e.Number)
}

func (w *playedWorld) CloseEpoch(_ context.Context, _ string, e lineage.Epoch) error {
	return w.does("CloseEpoch", e.Number)
}

func (w *playedWorld) There(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !slices.Contains(w.targets, path) })
}

func (w *playedWorld) Begun(_ context.Context, paths []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !slices.Contains(w.begun, path) }), w.does("Begun", paths)
}

func (w *playedWorld) Uncover(_ context.Context, path string) error { return w.does("Uncover", path) }

func (w *playedWorld) ShutDowns() []string { return w.down }

func (w *playedWorld) AllClosed(context.Context) error { return w.does("AllClosed") }

// bench is an Owner on a played node.
type bench struct {
	*Owner
	*script
	world *playedWorld
	pools *playedPools
	disks *playedDisks
	// pokes are the delays of those that were asked for, and behind is the work in the background.
	pokes  []time.Duration
	behind []func(context.Context)
	log    []string
}

// onBench makes an Owner of the medium that a test wants, with rules of its own.
func onBench(t *testing.T, medium func(*bench) Medium, rules ownership.Node) *bench {
	t.Helper()
	s := &script{fails: map[string]error{}}
	b := &bench{
		script: s, world: &playedWorld{script: s, now: noon}, pools: &playedPools{script: s},
		disks: &playedDisks{script: s},
	}
	b.Owner = New(Config{
		Node: "a", Boot: "boot", World: b.world, Medium: medium(b), Locks: &keyed.Locks[string]{}, Rules: rules,
		Poke:       func(_ string, delay time.Duration) { b.pokes = append(b.pokes, delay) },
		Background: func(work func(context.Context)) { b.behind = append(b.behind, work) },
		Log:        logr.New(funcr.New(func(_, args string) { b.log = append(b.log, args) }, funcr.Options{}).GetSink()),
	})
	return b
}

func ofCopies(b *bench) Medium { return Copies(b.pools) }

func ofDisks(b *bench) Medium {
	return Attachments(b.disks, func(*v1alpha1.Volume) (shared.Disk, error) { return theLUN, b.failing("Locate") })
}

// says is a chain that always decides the same.
func says(do ownership.Action) ownership.Chain[ownership.NodeFacts] {
	return ownership.Chain[ownership.NodeFacts]{{Name: "always", Decide: func(*ownership.NodeFacts) (ownership.Action, bool) { return do, true }}}
}

func (b *bench) hint(f func(h *hint)) { b.hinted(volume, f) }
