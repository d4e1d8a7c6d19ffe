package oversight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
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
	"berth.dev/berth/internal/record"
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
	// cut: the API server does not answer its reads and writes.
	cut bool
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
		<-ended
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

// link is a controller's way to the Leases.
type link struct {
	*leases
	of *overseer
}

func (l *link) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if l.of.cut {
		return errCut
	}
	return l.leases.List(ctx, list, options...)
}

var errCut = errors.New("connection refused")

// liveReads are a controller's reads of the API server. Anything may happen before each.
type liveReads struct{ o *overseer }

func (l liveReads) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return l.o.listFrom(l.o.s.now(), list)
}

func (l liveReads) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o := l.o
	_, volume := into.(*v1alpha1.Volume)
	if volume && o.plant.oldProofs && time.Since(o.keptAt) > 20*time.Second {
		o.keptAt = time.Now()
		for _, early := range []client.Object{&corev1.Node{}, &coordinationv1.Lease{}} {
			o.remember(early)
		}
	}
	o.s.between(o)
	if volume {
		o.before = o.broken
	}
	if o.cut {
		o.broken = time.Now()
		if o.plant.errorIsAbsent {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		return errCut
	}
	err := o.answer(key, into)
	if n, is := into.(*corev1.Node); is {
		o.ordered = outOfService(n)
	}
	return err
}

// answer is that of the API server, unless a mistake comes between.
func (o *overseer) answer(key client.ObjectKey, into client.Object) error {
	_, volume := into.(*v1alpha1.Volume)
	if kept, is := o.kept[fmt.Sprintf("%T %s", into, key)]; is && o.plant.oldProofs {
		return fill(kept, into)
	}
	if volume && o.plant.cachedRecord {
		return o.getFrom(o.cached(), key, into)
	}
	return o.getFrom(o.s.now(), key, into)
}

// remember keeps what the API server says before the record is read.
func (o *overseer) remember(kind client.Object) {
	for _, name := range o.s.names {
		for _, key := range []client.ObjectKey{{Name: name}, {Namespace: namespace, Name: v1alpha1.GuardLeasePrefix + name}, {Namespace: corev1.NamespaceNodeLease, Name: name}} {
			into := kind.DeepCopyObject().(client.Object)
			if o.getFrom(o.s.now(), key, into) == nil {
				o.kept[fmt.Sprintf("%T %s", into, key)] = into
			}
		}
	}
}

func fill(from, into client.Object) error {
	switch into := into.(type) {
	case *corev1.Node:
		from.(*corev1.Node).DeepCopyInto(into)
	case *coordinationv1.Lease:
		from.(*coordinationv1.Lease).DeepCopyInto(into)
	case *v1alpha1.Volume:
		from.(*v1alpha1.Volume).DeepCopyInto(into)
	case *corev1.PersistentVolumeClaim:
		from.(*corev1.PersistentVolumeClaim).DeepCopyInto(into)
	}
	return nil
}

func (o *overseer) getFrom(from *shot, key client.ObjectKey, into client.Object) error {
	var found client.Object
	switch into.(type) {
	case *corev1.Node:
		if n := from.nodes[key.Name]; n != nil {
			found = n
		}
	case *v1alpha1.Volume:
		found = from.volume
	case *corev1.PersistentVolumeClaim:
		found = claim()
	case *coordinationv1.Lease:
		o.s.leases.mu.Lock()
		defer o.s.leases.mu.Unlock()
		if l := o.s.leases.stored[key.Name]; l != nil {
			found = l
		}
	}
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return fill(found, into)
}

func (o *overseer) listFrom(from *shot, list client.ObjectList) error {
	switch list := list.(type) {
	case *corev1.PersistentVolumeList:
		list.Items = append(list.Items, *persistentVolume())
	case *corev1.PodList:
		for _, p := range from.pods {
			list.Items = append(list.Items, *p)
		}
	case *v1alpha1.StorageNodeList:
		for _, n := range o.s.names {
			list.Items = append(list.Items, v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n}})
		}
	}
	return nil
}

// Get, List, Create, Delete and Status are the controller's cached reads, and its writes.
func (o *overseer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return o.getFrom(o.cached(), key, into)
}

func (o *overseer) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return o.listFrom(o.cached(), list)
}

// cached is what the caches show.
func (o *overseer) cached() *shot {
	return &shot{volume: o.s.past[o.shown[ofVolumes]].volume, nodes: o.s.past[o.shown[ofNodes]].nodes, pods: o.s.past[o.shown[ofPods]].pods}
}

func (o *overseer) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

func (o *overseer) Delete(_ context.Context, of client.Object, options ...client.DeleteOption) error {
	o.s.between(o)
	if o.cut {
		return errCut
	}
	var d client.DeleteOptions
	d.ApplyOptions(options)
	p := o.s.now().pods[of.GetName()]
	if p == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), of.GetName())
	}
	if p.UID != *d.Preconditions.UID {
		return apierrors.NewConflict(corev1.Resource("pods"), of.GetName(), errors.New("its UID is another"))
	}
	o.s.judgeEnd(p)
	o.s.changes(func(n *shot) { delete(n.pods, p.Name) })
	return nil
}

func (o *overseer) Status() client.SubResourceWriter { return statusWriter{o: o} }

type statusWriter struct {
	client.SubResourceWriter
	o *overseer
}

func (w statusWriter) Update(_ context.Context, of client.Object, _ ...client.SubResourceUpdateOption) error {
	o, v := w.o, of.(*v1alpha1.Volume)
	o.s.between(o)
	if o.cut {
		return errCut
	}
	old := o.s.now().volume
	if err := o.s.put(v, o.plant.blindWrites); err != nil {
		return err
	}
	o.s.judgeWrite(o, old, v)
	if o.s.chance(20) {
		return errors.New("the answer was lost")
	}
	return nil
}

// judgeWrite asks the machine itself, when its epoch is called fenced, whether it may still write.
func (s *sim) judgeWrite(o *overseer, old, next *v1alpha1.Volume) {
	was, err := record.From(old)
	is, failed := record.From(next)
	if err != nil || failed != nil {
		s.fail("the record cannot be read: %v, %v", err, failed)
		return
	}
	if was.Epoch != is.Epoch || !was.Primary.Phase.Open() {
		if is.Primary.Phase.Open() && !was.Primary.Phase.Open() || was.Epoch.Number > is.Epoch.Number {
			s.fail("epoch %v of a controller replaced %v", is.Epoch, was.Epoch)
		}
		return
	}
	if is.Primary.Phase != ownership.Fenced {
		return
	}
	m := s.machine(was.Primary.Node)
	s.fences[s.proves(m.name)]++
	if m.up && m.holds && m.epoch == was.Epoch {
		s.fail("%s is called fenced and may write into epoch %v", m.name, m.epoch)
	}
	if !o.ordered && time.Since(o.before) < ownership.WatchFirst {
		s.fail("%s was fenced %s after the contact was broken", m.name, time.Since(o.before))
	}
}

// proves is what the Node says about itself, and the contract if it says nothing.
func (s *sim) proves(node string) ownership.ProofKind {
	if proofs := proofsOf(s.now().nodes[node]); len(proofs) > 0 {
		return proofs[0].Kind
	}
	return ownership.SelfFenced
}

// judgeEnd: a pod is ended only when the record shows that its epoch is over.
func (s *sim) judgeEnd(p *corev1.Pod) {
	s.ended++
	v, err := record.From(s.now().volume)
	if err != nil {
		s.fail("the record cannot be read: %v", err)
		return
	}
	m := s.machine(p.Spec.NodeName)
	if m.up && m.holds && m.pod == p.Name {
		s.fail("pod %s was ended, and %s owns epoch %v", p.Name, m.name, m.epoch)
	}
	if v.Primary.Phase.Open() && p.Labels["epoch"] == v.Epoch.ID {
		s.fail("pod %s was ended before epoch %v", p.Name, v.Epoch)
	}
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
