package oversight

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/controller/cut"
	"berth.dev/berth/internal/controller/upkeep"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// world is a cluster whose nodes renew their leases, with controllers, under virtual time.
type world struct {
	t       *testing.T
	server  *lagging.Server
	leases  *leases
	peers   *played
	storage []string
	dead    map[string]bool
	// kubelets renew although their node's guard and agent are dead.
	kubelets bool
	// controllers oversee the volume, each with its own contact.
	controllers []*Reconciler
}

// inWorld plays a test under virtual time.
func inWorld(t *testing.T, objects []client.Object, play func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, server: lagging.New(t, objects...), leases: newLeases(), peers: &played{}, dead: map[string]bool{}}
		w.server.Cut(cut.Foreign(epochs, true))
		w.server.Index(&corev1.PersistentVolume{}, upkeep.HandleIndex, upkeep.Handles(epochs))
		for _, o := range objects {
			if s, is := o.(*v1alpha1.StorageNode); is {
				w.storage = append(w.storage, s.Name)
			}
		}
		w.renew()
		play(w)
	})
}

// controller adds a controller. Its reader of the API server is altered, if that is asked for.
func (w *world) controller(alter ...func(*Reconciler)) *Reconciler {
	w.t.Helper()
	live := &reads{Reader: w.server.Live(), leases: w.leases}
	r := &Reconciler{
		Client: w.server.Client(), Live: live, Peers: w.peers, Clock: clock.RealClock{},
		Contact: &Contact{Leases: w.leases, Namespace: namespace, Clock: clock.RealClock{}, Log: logr.Discard()},
		Leads:   func() bool { return true }, Rules: ownership.OverseeRules, Instance: "test",
	}
	for _, a := range alter {
		a(r)
	}
	ctx, end := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Contact.Start(ctx) }()
	w.t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	synctest.Wait()
	w.controllers = append(w.controllers, r)
	return r
}

// renew lets every node that lives renew its leases once.
func (w *world) renew() {
	now := time.Now()
	for _, n := range w.storage {
		if !w.dead[n] || w.kubelets {
			w.leases.put(renewed(corev1.NamespaceNodeLease, n, now))
		}
		if w.dead[n] {
			continue
		}
		w.leases.put(guardLease(n, w.storage, time.Duration(now.UnixNano())))
		w.leases.put(renewed(namespace, v1alpha1.AgentLeasePrefix+n, now))
	}
}

// passes lets time pass, in which the nodes renew every five seconds.
func (w *world) passes(d time.Duration) {
	for ; d > 0; d -= 5 * time.Second {
		w.waits(min(d, 5*time.Second))
		w.renew()
		synctest.Wait()
	}
}

// waits lets time pass in which nothing is renewed.
func (w *world) waits(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
	synctest.Wait()
}

// answers lets a node answer that it knows nothing more than the record.
func (w *world) answers(node string) {
	w.peers.answers = append(w.peers.answers, ownership.Peer{Node: node})
}

// oversees lets a controller look at the volume.
func (w *world) oversees(r *Reconciler) {
	w.t.Helper()
	if _, err := r.Reconcile(w.t.Context(), named(id)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) volume() *v1alpha1.Volume {
	w.t.Helper()
	v := &v1alpha1.Volume{}
	if err := w.server.Others().Get(w.t.Context(), types.NamespacedName{Name: id}, v); err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) phase() v1alpha1.PrimaryPhase { return w.volume().Status.Ownership.Primary.Phase }

// edits changes an object as another client does.
func edits[T client.Object](w *world, o T, change func(T)) {
	w.t.Helper()
	if err := w.server.Others().Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatal(err)
	}
	change(o)
	if err := w.server.Others().Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// becomes makes the record another one, as a node does.
func (w *world) becomes(change func(*ownership.Volume)) {
	w.t.Helper()
	v := w.volume()
	old, err := record.From(v)
	if err != nil {
		w.t.Fatal(err)
	}
	change(old)
	next, err := record.Into(v, old)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.server.Others().Status().Update(w.t.Context(), next); err != nil {
		w.t.Fatal(err)
	}
}

// pods are the names of the pods that are left.
func (w *world) pods() (names []string) {
	w.t.Helper()
	var list corev1.PodList
	if err := w.server.Others().List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// labels are the nodes that have the volume's label.
func (w *world) labels() (nodes []string) {
	w.t.Helper()
	var list corev1.NodeList
	if err := w.server.Others().List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		if labelled(&list.Items[i])[id] {
			nodes = append(nodes, list.Items[i].Name)
		}
	}
	return nodes
}

// reads are a controller's reads of the API server. Leases come from the ones that are watched.
type reads struct {
	client.Reader
	leases *leases
	// before is called before each read, and its error is the answer.
	before func(o runtime.Object) error
	count  atomic.Int64
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	r.count.Add(1)
	if r.before != nil {
		if err := r.before(o); err != nil {
			return err
		}
	}
	lease, is := o.(*coordinationv1.Lease)
	if !is {
		return r.Reader.Get(ctx, key, o, options...)
	}
	r.leases.mu.Lock()
	defer r.leases.mu.Unlock()
	found, ok := r.leases.stored[key.Name]
	if !ok {
		return r.Reader.Get(ctx, key, o, options...) // not found
	}
	found.DeepCopyInto(lease)
	return nil
}

func (r *reads) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	r.count.Add(1)
	if r.before != nil {
		if err := r.before(list); err != nil {
			return err
		}
	}
	return r.Reader.List(ctx, list, options...)
}

// played are peers and witnesses.
type played struct {
	answers   []ownership.Peer
	asked     []string
	witnesses map[string][]ownership.Witness
	before    func()
}

func (p *played) Ask(_ context.Context, _ string, nodes []string) (answers []ownership.Peer) {
	p.asked = nodes
	if p.before != nil {
		p.before()
	}
	for _, a := range p.answers {
		for _, n := range nodes {
			if a.Node == n {
				answers = append(answers, a)
			}
		}
	}
	return answers
}

func (p *played) Witnesses(_ context.Context, suspect string) []ownership.Witness {
	return p.witnesses[suspect]
}

// holds makes n2 answer that it holds the first snapshot.
func (p *played) holds(nodes ...string) {
	for _, n := range nodes {
		p.answers = append(p.answers, ownership.Peer{Node: n, Copy: ownership.Copy{Exists: true, Points: []lineage.Point{first},
			Promise: ownership.Promise{Epoch: e2, Primary: "n1", Boot: boot, Lineage: copies().Lineage}}})
	}
}
