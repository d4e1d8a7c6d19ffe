package oversight

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/controller/upkeep"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

const (
	id        = "pvc-00000000-0000-0000-0000-000000000001"
	namespace = "berth-system"
	boot      = "boot-1"
)

// epochs is a driver whose volumes have replicas.
var epochs = driver.Driver{Name: "disk.berth.dev", Epochs: true}

var (
	e1    = lineage.Epoch{Number: 1, ID: "one"}
	e2    = lineage.Epoch{Number: 2, ID: "two"}
	first = lineage.Point{Epoch: e1, Seq: 1}
)

// copies is a volume with copies on n1, n2 and n3. n1 owns epoch 2.
func copies(edits ...func(*ownership.Volume)) *ownership.Volume {
	v := &ownership.Volume{
		Kind: ownership.Snapshots, Factor: 3, Epoch: e2, RecoveryPoint: first,
		Lineage:  lineage.Lineage{{Epoch: e1}, {Epoch: e2, From: first}},
		Primary:  ownership.Primary{Node: "n1", Boot: boot, Phase: ownership.Active},
		Failover: ownership.Failover{Automatic: true, MaxDataLoss: time.Minute},
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		v.Replicas = append(v.Replicas, ownership.Replica{Node: n, State: ownership.Ready, Point: first})
	}
	for _, edit := range edits {
		edit(v)
	}
	return v
}

// shared is a shared disk that is attached to n1 and n2. n1 owns epoch 2.
func shared(edits ...func(*ownership.Volume)) *ownership.Volume {
	v := copies()
	v.Kind, v.Factor, v.RecoveryPoint = ownership.Attachments, 2, lineage.Point{}
	v.Sharing = ownership.Sharing{MaxShares: 2}
	v.Lineage = lineage.Lineage{{Epoch: e1}, {Epoch: e2}}
	v.Replicas = []ownership.Replica{{Node: "n1", State: ownership.Ready}, {Node: "n2", State: ownership.Ready}}
	for _, edit := range edits {
		edit(v)
	}
	return v
}

func phase(p ownership.Phase) func(*ownership.Volume) {
	return func(v *ownership.Volume) { v.Primary.Phase = p }
}

// object is the Volume with a record.
func object(t testing.TB, v *ownership.Volume) *v1alpha1.Volume {
	t.Helper()
	o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: id, UID: "v", Finalizers: []string{v1alpha1.VolumeFinalizer}}}
	o.Spec.Driver, o.Spec.Sharing, o.Spec.PoolClass = epochs.Name, v1alpha1.Exclusive, "fast"
	o.Spec.Placement = v1alpha1.PlacementVolume
	o.Spec.Replication = v1alpha1.Replication{
		Factor: int32(v.Factor), Kind: v1alpha1.ReplicationKind(v.Kind.String()),
		Failover: &v1alpha1.Failover{Automatic: v.Failover.Automatic, MaxDataLoss: &metav1.Duration{Duration: v.Failover.MaxDataLoss}},
	}
	if v.Kind.Traits().Attaches {
		o.Spec.Replication.Attachments = &v1alpha1.Attachments{MaxShares: int32(v.Sharing.MaxShares), Persistent: v.Sharing.Persistent}
	}
	written, err := record.Into(o, v)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: id},
	}
}

func persistentVolume() *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: id}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: epochs.Name, VolumeHandle: id}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "claim"}
	return pv
}

// pod is a pod on a node that uses the claim.
func pod(name, node string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func pending(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }

func leaving(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"test/stays"}
}

func node(name string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.NodeInfo.SystemUUID = "machine-of-" + name
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
}

func switchedOff(machine, boot string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.PoweredOffAnnotation, `{"machine":"`+machine+`","boot":"`+boot+`","since":"2026-01-01T00:00:00Z"}`)
	}
}

// cluster is a volume with its claim, and three storage nodes.
func cluster(t testing.TB, v *ownership.Volume, more ...client.Object) []client.Object {
	objects := []client.Object{object(t, v), claim(), persistentVolume()}
	for _, n := range []string{"n1", "n2", "n3"} {
		objects = append(objects, node(n), &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	return append(objects, more...)
}

// leases are the Leases of the API server, with their watches.
type leases struct {
	mu      sync.Mutex
	version int
	stored  map[string]*coordinationv1.Lease
	// log has all changes, in order, and watchers those that follow it.
	log      []watch.Event
	watchers []*watcher
	down     bool
	// delay is how late watches are; they keep the order.
	delay time.Duration
}

func newLeases() *leases { return &leases{stored: map[string]*coordinationv1.Lease{}} }

type watcher struct {
	of     *leases
	out    chan watch.Event
	closed bool
	queue  []delayed
}

type delayed struct {
	watch.Event
	at time.Time
}

// brings a change, now or later.
func (w *watcher) brings(e watch.Event, at time.Time) {
	if n := len(w.queue); n > 0 && w.queue[n-1].at.After(at) {
		at = w.queue[n-1].at
	}
	w.queue = append(w.queue, delayed{e, at})
	w.deliver()
}

func (w *watcher) deliver() {
	for len(w.queue) > 0 && !w.queue[0].at.After(time.Now()) {
		if !w.closed {
			w.out <- w.queue[0].Event
		}
		w.queue = w.queue[1:]
	}
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.out }

func (w *watcher) Stop() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.close()
}

func (w *watcher) close() {
	if !w.closed {
		w.closed = true
		close(w.out)
	}
}

func (l *leases) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return errors.New("connection refused")
	}
	into := list.(*coordinationv1.LeaseList)
	into.ResourceVersion = strconv.Itoa(l.version)
	for _, o := range l.stored {
		into.Items = append(into.Items, *o.DeepCopy())
	}
	return nil
}

func (l *leases) Watch(_ context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errors.New("connection refused")
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	from, _ := strconv.Atoi(o.Raw.ResourceVersion)
	w := &watcher{of: l, out: make(chan watch.Event, 1000)}
	for _, e := range l.log[from:] {
		w.brings(e, time.Now().Add(l.delay))
	}
	l.watchers = append(l.watchers, w)
	return w, nil
}

// put stores a Lease and tells the watches.
func (l *leases) put(o *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	o.ResourceVersion = strconv.Itoa(l.version)
	l.stored[o.Name] = o
	l.log = append(l.log, watch.Event{Type: watch.Modified, Object: o.DeepCopy()})
	for _, w := range l.watchers {
		w.brings(l.log[len(l.log)-1], time.Now().Add(l.delay))
	}
}

// deliver lets the watches bring what is due.
func (l *leases) deliver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watchers {
		w.deliver()
	}
}

// breaks ends all watches.
func (l *leases) breaks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watchers {
		w.close()
	}
	l.watchers = nil
}

// fails makes all watches bring an error, as when what they were to go on from was forgotten.
func (l *leases) fails() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watchers {
		if !w.closed {
			w.out <- watch.Event{Type: watch.Error, Object: &metav1.Status{Reason: metav1.StatusReasonExpired}}
		}
	}
}

// stops ends all watches and refuses new ones until it is told again.
func (l *leases) stops(down bool) {
	l.breaks()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// guardLease is a renewal of a node's guard, sent at a time on the machine's clock.
func guardLease(node string, storage []string, sent time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.GuardLeasePrefix + node, UID: "u", Annotations: map[string]string{
		v1alpha1.BootAnnotation: boot, v1alpha1.WatchdogAnnotation: "true",
		v1alpha1.MembersAnnotation: string(ownership.MembersOf(node, storage)),
		v1alpha1.SentAnnotation:    sent.String(), v1alpha1.SilentAnnotation: (5 * time.Second).String(),
	}}}
}

func renewed(namespace, name string, at time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: at}}}
}

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
		w.server.Index(&corev1.PersistentVolume{}, upkeep.HandleIndex, upkeep.Handles(epochs))
		w.server.DeletedByUID(&corev1.Pod{})
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
		<-ended
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
	count  int
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	r.count++
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
	r.count++
	return r.Reader.List(ctx, list, options...)
}

// played are peers and witnesses.
type played struct {
	answers   []ownership.Peer
	witnesses map[string][]ownership.Witness
	before    func()
}

func (p *played) Ask(_ context.Context, _ string, nodes []string) (answers []ownership.Peer) {
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
