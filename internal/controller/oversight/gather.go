package oversight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/upkeep"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// answering is how long a question waits for the replicas' answers.
const answering = 2 * time.Second

// question is what one question has found.
type question struct {
	// name of the volume, and a node that is to have it as if a pod were bound there; empty if none is.
	name, wish string
	// volume is the object that was read, with its version.
	volume *v1alpha1.Volume
	facts  ownership.ControllerFacts
	// pods use the volume; they were listed before the record was read.
	pods []corev1.Pod
	// bound are the PersistentVolumes of the volume that have a claim, by name. A volume that was moved to another
	// namespace has two for a while: the earlier one was retained, and its claim is gone.
	bound []bound
	// pv is the name of the one whose claim is there, or of the first of them, and claim is that claim; empty and nil
	// if there is none.
	pv    string
	claim *corev1.ObjectReference
	// away has the nodes whose kubelet ends no pod: they are out of service or look lost.
	away map[string]bool
	// boots are those of the pods' nodes that are not away, as the cache shows them.
	boots map[string]string
	// behind are the pods that a fence left behind. stranded pods have a dead mount as well, as far as is known, and
	// their node is there: they end if that stays so.
	behind, stranded []*corev1.Pod
	// evidence is what is known of each writer, by its node.
	evidence map[string]*evidence
}

// evidence is what is known of one writer, after the record was read.
type evidence struct {
	suspect
	proofs []ownership.Proof
	votes  []ownership.Witness
	// suspected is for how long the node has been suspected.
	suspected time.Duration
	// silent: the node is suspected, or its guard is silent.
	silent bool
	// vouched is for how long the last renewal of its guard counts as a word about now; zero if it does not.
	vouched time.Duration
}

// add adds what a look at the writer's node has shown.
func (e *evidence) add(seen *view) {
	e.votes, e.vouched, e.suspected = seen.votes, seen.vouched, seen.lost[e.node]
	if seen.leases == nil {
		return
	}
	if proof, proved := ownership.ContractProves(seen.leases); proved {
		e.proofs = append(e.proofs, proof)
	}
}

// urgent tells whether the writer may be proved to be stopped any moment.
func (e *evidence) urgent() bool { return e.silent || len(e.proofs) > 0 }

// decide asks the rules.
func (q *question) decide(rules ownership.Chain[ownership.ControllerFacts]) ownership.Action {
	return ownership.Oversee(rules, &q.facts, func(f *ownership.ControllerFacts, writer string) {
		if e := q.evidence[writer]; e != nil {
			f.Proofs, f.Witnesses, f.SuspectFor = e.proofs, e.votes, e.suspected
		}
	})
}

// bound is a PersistentVolume and its claim.
type bound struct {
	pv    string
	claim *corev1.ObjectReference
}

// gather asks about a volume, in the order that the package's documentation gives. The error is one of
// the record's types where there is no record. live asks the API server which pods want the volume.
func (r *Reconciler) gather(ctx context.Context, of question, live bool) (*question, error) {
	name := of.name
	q := &question{name: name, wish: of.wish, away: map[string]bool{}, boots: map[string]string{}, evidence: map[string]*evidence{}}
	if err := r.users(ctx, q, name); err != nil {
		return nil, err
	}
	q.volume = &v1alpha1.Volume{}
	err := r.read(ctx, types.NamespacedName{Name: name}, q.volume)
	v, err := record.Read(name, q.volume, err)
	if err != nil {
		return nil, err
	}
	q.facts.Record = v
	if v.Kind.Traits().Attaches {
		if q.facts.Wanted, err = r.wanted(ctx, q, live); err != nil {
			return nil, err
		}
		if q.wish != "" {
			q.facts.Wanted = append(q.facts.Wanted, q.wish)
			slices.Sort(q.facts.Wanted)
		}
	}
	q.facts.Peers = r.ask(ctx, q)
	for _, writer := range v.Writing() {
		if q.evidence[writer], err = r.inquire(ctx, writer); err != nil {
			return nil, err
		}
	}
	return q, r.survey(ctx, q)
}

// read asks the API server. A read that it does not answer ends the contact: what happened meanwhile is
// not known.
func (r *Reconciler) read(ctx context.Context, key client.ObjectKey, o client.Object) error {
	return heed(ctx, r.Contact, r.Live.Get(ctx, key, o))
}

// heed ends the contact if the API server did not answer.
func heed(ctx context.Context, c *Contact, err error) error {
	if err != nil && !answered(err) && ctx.Err() == nil {
		c.Break()
	}
	return err
}

// answered tells whether the API server itself answered: it is there, and says no.
func answered(err error) bool {
	if errors.Is(err, driver.ErrForeign) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err)
}

// users finds the claim of the volume and the pods that use it, in the cache. An index of a cache has no order, so the
// PersistentVolumes get one: two questions must not find two claims.
func (r *Reconciler) users(ctx context.Context, q *question, name string) error {
	var pvs corev1.PersistentVolumeList
	if err := r.Client.List(ctx, &pvs, client.MatchingFields{upkeep.HandleIndex: name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	for i := range pvs.Items {
		if pv := &pvs.Items[i]; pv.Spec.ClaimRef != nil {
			q.bound = append(q.bound, bound{pv.Name, pv.Spec.ClaimRef})
		}
	}
	if slices.SortFunc(q.bound, func(a, b bound) int { return cmp.Compare(a.pv, b.pv) }); len(q.bound) > 0 {
		q.pv, q.claim = q.bound[0].pv, q.bound[0].claim
	}
	claim, err := claimOf(q, func(key client.ObjectKey, o client.Object) error { return r.Client.Get(ctx, key, o) })
	if claim == nil {
		return err
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(claim.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	q.pods = using(pods.Items, claim)
	return nil
}

// claimNow is the very claim that the volume is bound to, the first if there are several, nil if the API server does not have it.
func (r *Reconciler) claimNow(ctx context.Context, q *question) (*corev1.PersistentVolumeClaim, error) {
	return claimOf(q, func(key client.ObjectKey, o client.Object) error { return r.read(ctx, key, o) })
}

// claimOf is the same as one reader has it.
func claimOf(q *question, read func(client.ObjectKey, client.Object) error) (*corev1.PersistentVolumeClaim, error) {
	for _, b := range q.bound {
		claim := &corev1.PersistentVolumeClaim{}
		err := read(types.NamespacedName{Namespace: b.claim.Namespace, Name: b.claim.Name}, claim)
		if apierrors.IsNotFound(err) || err == nil && claim.UID != b.claim.UID {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading claim %s/%s: %w", b.claim.Namespace, b.claim.Name, err)
		}
		q.pv, q.claim = b.pv, b.claim
		return claim, nil
	}
	return nil, nil
}

func using(pods []corev1.Pod, claim *corev1.PersistentVolumeClaim) (users []corev1.Pod) {
	for i := range pods {
		if uses(&pods[i], claim) {
			users = append(users, pods[i])
		}
	}
	return users
}

// wanted are the nodes with a pod that wants the volume.
func (r *Reconciler) wanted(ctx context.Context, q *question, live bool) ([]string, error) {
	if !live {
		return wanted(q.pods), nil
	}
	claim, err := r.claimNow(ctx, q)
	if claim == nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := heed(ctx, r.Contact, r.Live.List(ctx, &pods, client.InNamespace(claim.Namespace))); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return wanted(using(pods.Items, claim)), nil
}

// ask asks the nodes with a replica, and every node if none of those can take the volume, also one whose Node was
// deleted. Without Peers no node answers.
func (r *Reconciler) ask(ctx context.Context, q *question) []ownership.Peer {
	if r.Peers == nil {
		return nil
	}
	v := q.facts.Record
	nodes := []string{v.Primary.Node}
	if adrift(q, r.Clock.Now()) {
		nodes = append(nodes, r.Contact.known()...)
	}
	for i := range v.Replicas {
		nodes = append(nodes, v.Replicas[i].Node)
	}
	slices.Sort(nodes)
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	return r.Peers.Ask(ctx, q.name, slices.DeleteFunc(slices.Compact(nodes), func(n string) bool { return n == "" }))
}

// inquire reads what may prove that a writer is stopped, if there is a reason to: a proof that is not
// looked for is none.
func (r *Reconciler) inquire(ctx context.Context, writer string) (*evidence, error) {
	e := &evidence{suspect: suspect{node: writer}}
	cached := &corev1.Node{}
	err := r.Client.Get(ctx, types.NamespacedName{Name: writer}, cached)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading node %s: %w", writer, err)
	}
	e.silent = r.Contact.silent(writer) || ownership.Suspected(r.say(ctx, writer))
	if err == nil && !speaks(cached) && !e.silent {
		return e, nil
	}
	node := &corev1.Node{}
	switch err := r.read(ctx, types.NamespacedName{Name: writer}, node); {
	case err == nil:
		e.proofs = proofsOf(node)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading node %s: %w", writer, err)
	}
	r.leases(ctx, &e.suspect)
	return e, nil
}

// leases reads the Leases of the suspect's guard and kubelet. One that cannot be read proves nothing, and
// does not stand in the way of other proofs.
func (r *Reconciler) leases(ctx context.Context, s *suspect) {
	guard, kubelet := &coordinationv1.Lease{}, &coordinationv1.Lease{}
	err := r.read(ctx, types.NamespacedName{Namespace: r.Contact.Namespace, Name: v1alpha1.GuardLeasePrefix + s.node}, guard)
	if client.IgnoreNotFound(err) != nil {
		log.FromContext(ctx).Info("cannot read the lease of a guard, which then proves nothing", "node", s.node, "reason", err.Error())
	}
	s.lease = guard.ResourceVersion
	err = r.read(ctx, types.NamespacedName{Namespace: corev1.NamespaceNodeLease, Name: s.node}, kubelet)
	if client.IgnoreNotFound(err) != nil {
		log.FromContext(ctx).Info("cannot read the lease of a kubelet, which then counts as alive", "node", s.node, "reason", err.Error())
		return
	}
	s.kubelet, s.kubeletRead = renewal(kubelet), true
}

// say is what witnesses other than the node's own leases say about it now.
func (r *Reconciler) say(ctx context.Context, node string) []ownership.Witness {
	if r.Witnesses == nil {
		return nil
	}
	return r.Witnesses.Witnesses(ctx, node)
}

// survey fills in what is known of the nodes at this moment, which is after the record was read.
func (r *Reconciler) survey(ctx context.Context, q *question) error {
	var storage v1alpha1.StorageNodeList
	if err := r.Client.List(ctx, &storage, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing storage nodes: %w", err)
	}
	said, unlisted := map[string][]ownership.Witness{}, map[string][]ownership.Witness{}
	for i := range storage.Items {
		said[storage.Items[i].Name] = r.say(ctx, storage.Items[i].Name)
	}
	f := &q.facts
	for i := range f.Record.Replicas {
		node := f.Record.Replicas[i].Node
		if _, is := said[node]; !is {
			unlisted[node] = r.say(ctx, node)
		}
	}
	for writer := range q.evidence {
		said[writer] = r.say(ctx, writer) // it counts itself, whether or not it still is a storage node
	}
	seen := r.Contact.look(suspect{}, said, unlisted)
	for _, e := range q.evidence {
		seen = r.Contact.look(e.suspect, said, unlisted)
		e.add(&seen)
	}
	f.Now, f.Watching = r.Clock.Now(), seen.watching
	f.SuspectFor = seen.lost[f.Record.Primary.Node]
	f.Nodes = machines(r.Places, q, storage.Items, seen)
	for node := range seen.lost {
		q.away[node] = true
	}
	return r.closed(ctx, q)
}

// machines are the storage nodes, in the order in which the rules shall try them as places, and after them the nodes
// that the record alone knows.
func machines(known Places, q *question, storage []v1alpha1.StorageNode, seen view) (nodes []ownership.Machine) {
	var names []string
	for i := range storage {
		names = append(names, storage[i].Name)
	}
	var places map[string]Place
	if known != nil {
		places = known.Places(q.volume, names)
	}
	for _, name := range names {
		p := places[name]
		m := ownership.Machine{Name: name, Fits: p.Fits, Slots: p.Slots, GiveWay: p.GiveWay, MakesRoom: p.MakesRoom, Leaving: p.Leaving}
		m.LostFor, m.Lost = seen.lost[name]
		nodes = append(nodes, m)
	}
	slices.SortFunc(nodes, func(a, b ownership.Machine) int {
		return cmp.Or(cmp.Compare(places[a.Name].Rank, places[b.Name].Rank), cmp.Compare(a.Name, b.Name))
	})
	for i := range q.facts.Record.Replicas {
		m := ownership.Machine{Name: q.facts.Record.Replicas[i].Node, Unlisted: true}
		if m.LostFor, m.Lost = seen.lost[m.Name]; !slices.Contains(names, m.Name) {
			nodes = append(nodes, m)
		}
	}
	return nodes
}

// closed adds the nodes of pods that an administrator has declared out of service, and the boots of the
// others, as the cache shows them. This decides only whether a pod that has not begun, or whose mount is dead,
// waits for its kubelet.
func (r *Reconciler) closed(ctx context.Context, q *question) error {
	for i := range q.pods {
		node := &corev1.Node{}
		name := q.pods[i].Spec.NodeName
		if name == "" || q.away[name] {
			continue
		}
		switch err := r.Client.Get(ctx, types.NamespacedName{Name: name}, node, client.UnsafeDisableDeepCopy); {
		case err == nil:
			q.away[name], q.boots[name] = outOfService(node), node.Status.NodeInfo.BootID
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading node %s: %w", name, err)
		}
	}
	q.stranded = stranded(q.facts.Record, q.pods, q.facts.Peers, func(node string) string { return q.boots[node] })
	behind, doubt := leftBehind(q.facts.Record, q.pods, func(node string) bool { return q.away[node] }, func(node string) bool {
		return slices.ContainsFunc(q.facts.Peers, func(p ownership.Peer) bool { return p.Node == node })
	})
	q.behind, q.stranded = behind, append(q.stranded, doubt...)
	return nil
}
