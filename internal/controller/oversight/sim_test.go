package oversight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// shot is the state of the API server at one moment. It is never changed.
type shot struct {
	volume *v1alpha1.Volume
	nodes  map[string]*corev1.Node
	pods   map[string]*corev1.Pod
}

// sim is an API server with nodes that live in truth, and two controllers that run the product's code. Any
// event may come between two requests of a controller.
type sim struct {
	t       *testing.T
	dice    *rand.Rand
	began   time.Time
	version int
	past    []*shot
	leases  *leases
	nodes   []*machine
	names   []string
	ctls    []*overseer
	slow    time.Duration // the most that storing a renewal takes
	depth   int
	epochs  int
	// wrong is the first violation; the others are tallies.
	wrong            string
	fences           map[ownership.ProofKind]int
	ended, takeovers int
}

// overseer is a controller with its cache and its view of the API server.
type overseer struct {
	client.Client
	s *sim
	r *Reconciler
	// shown is how far the cache of each kind is, and stuck until when it stays there.
	shown [kinds]int
	stuck [kinds]time.Time
	// cut: the API server does not answer its reads and writes. Its contact asks beside the steps.
	cut atomic.Bool
	// broken is when its contact with the API server was last broken, in truth, and before the same when it
	// read the record last: what breaks later may come after the decision.
	broken, before time.Time
	// ordered: the Node that it read last was tainted. The taint may be gone when the record is written.
	ordered bool
	plant   plant
	// kept are proofs from before the record, for the mistake of that name.
	kept   map[string]client.Object
	keptAt time.Time
}

// The kinds that are cached one by one.
const (
	ofVolumes = iota
	ofNodes
	ofPods
	kinds
)

// plant is a mistake of a shell.
type plant struct {
	oldProofs, blindWrites, errorIsAbsent, cachedRecord, hiddenBreaks bool
}

func newSim(t *testing.T, seed uint64, v *ownership.Volume, p plant) *sim {
	s := &sim{t: t, dice: rand.New(rand.NewPCG(seed, 7)), began: time.Now(), leases: newLeases(), epochs: 2, fences: map[ownership.ProofKind]int{}}
	for i := range 3 + s.dice.IntN(2) {
		name := fmt.Sprint("n", i+1)
		s.names = append(s.names, name)
		s.nodes = append(s.nodes, &machine{s: s, name: name, up: true, boot: 1, offset: time.Duration(s.dice.IntN(1000)) * time.Second, cutFrom: map[string]bool{}})
	}
	first := &shot{volume: object(t, v), nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}}
	first.volume.ResourceVersion = "0"
	for _, n := range s.names {
		first.nodes[n] = node(n)
	}
	s.past = []*shot{first}
	s.nodes[0].epoch, s.nodes[0].holds = e2, true
	s.nodes[0].mount()
	for range 2 {
		s.ctls = append(s.ctls, s.controller(p))
	}
	return s
}

func (s *sim) controller(p plant) *overseer {
	o := &overseer{s: s, plant: p, broken: time.Now(), kept: map[string]client.Object{}}
	source := Leases(&link{s.leases, o})
	if p.hiddenBreaks {
		source = &hidden{Leases: source}
	}
	peers := &played{}
	peers.holds(s.names[1:]...)
	o.r = &Reconciler{
		Client: o, Live: liveReads{o}, Peers: peers, Clock: clock.RealClock{},
		Contact: &Contact{Leases: source, Namespace: namespace, Clock: clock.RealClock{}, Log: logr.Discard()},
		Leads:   func() bool { return o == s.ctls[0] }, Rules: ownership.OverseeRules,
	}
	ctx, end := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.r.Contact.Start(ctx) }()
	s.t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	return o
}

func (s *sim) chance(n int) bool { return s.dice.IntN(n) == 0 }

func (s *sim) upTo(d time.Duration) time.Duration {
	return time.Duration(s.dice.Int64N(int64(d/tick)+1)) * tick
}

func (s *sim) fail(format string, args ...any) {
	if s.wrong == "" {
		s.wrong = fmt.Sprintf(format, args...)
	}
}

func (s *sim) now() *shot { return s.past[len(s.past)-1] }

// changes makes the next state of the API server.
func (s *sim) changes(edit func(*shot)) {
	next := *s.now()
	next.nodes, next.pods = maps.Clone(next.nodes), maps.Clone(next.pods)
	edit(&next)
	s.past = append(s.past, &next)
}

// put is a write of the status of the Volume, compared with the version that was read unless blind.
func (s *sim) put(v *v1alpha1.Volume, blind bool) error {
	if !blind && v.ResourceVersion != s.now().volume.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "volumes"}, v.Name, errors.New("it has changed"))
	}
	s.version++
	v.ResourceVersion = strconv.Itoa(s.version)
	s.changes(func(n *shot) { n.volume = v.DeepCopy() })
	return nil
}

func (s *sim) machine(name string) *machine {
	for _, m := range s.nodes {
		if m.name == name {
			return m
		}
	}
	return nil
}

// between lets anything happen between two requests of a controller.
func (s *sim) between(o *overseer) {
	if s.depth > 1 || !s.chance(3) {
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	for range 1 + s.dice.IntN(4) {
		s.step(o)
	}
}

// step lets a quarter of a second pass for all but a controller that waits for an answer.
func (s *sim) step(but *overseer) {
	time.Sleep(tick) //nolint:forbidigo // virtual time
	for _, m := range s.nodes {
		m.lives()
	}
	s.leases.deliver()
	synctest.Wait()
	for _, o := range s.ctls {
		for kind := range o.shown {
			if s.chance(3) && time.Now().After(o.stuck[kind]) {
				o.shown[kind] += s.dice.IntN(len(s.past) - o.shown[kind])
			}
		}
		if o == but || s.depth > 1 || !s.chance(4) {
			continue
		}
		o.r.Contact.troubled(o.r.saidOfAll(s.t.Context()))
		_, _ = o.r.Reconcile(s.t.Context(), named(id)) // a question that fails is asked again
	}
}

// newEpoch is the next epoch after one.
func (s *sim) newEpoch(after lineage.Epoch) lineage.Epoch {
	s.epochs++
	return lineage.Epoch{Number: after.Number + 1, ID: fmt.Sprint("epoch-", s.epochs)}
}

// hidden makes one endless watch out of many, and so keeps from the Contact that they broke.
type hidden struct{ Leases }

func (h *hidden) Watch(ctx context.Context, kind client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	inner, err := h.Leases.Watch(ctx, kind, options...)
	if err != nil {
		return nil, err
	}
	w := &watcher{of: newLeases(), out: make(chan watch.Event, 1000)}
	go h.feed(ctx, inner, w)
	return w, nil
}

func (h *hidden) feed(ctx context.Context, inner watch.Interface, w *watcher) {
	for ctx.Err() == nil {
		for e := range orEnd(ctx, inner) {
			w.out <- e
		}
		inner.Stop()
		select {
		case <-ctx.Done():
			return
		case <-time.After(reconnect):
		}
		var list coordinationv1.LeaseList
		if h.List(ctx, &list) != nil {
			inner = watch.NewEmptyWatch()
			continue
		}
		for i := range list.Items {
			w.out <- watch.Event{Type: watch.Modified, Object: &list.Items[i]}
		}
		inner, _ = h.Leases.Watch(ctx, &list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	}
}

// orEnd yields the events of a watch until it ends or the context does.
func orEnd(ctx context.Context, w watch.Interface) func(func(watch.Event) bool) {
	return func(yield func(watch.Event) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case e, more := <-w.ResultChan():
				if !more || !yield(e) {
					return
				}
			}
		}
	}
}
