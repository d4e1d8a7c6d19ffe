package oversight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// Peers asks nodes about their copies of a volume. A node that does not answer in time is not among the
// answers: silence is no answer.
type Peers interface {
	Ask(ctx context.Context, volume string, nodes []string) []ownership.Peer
}

// Witnesses tells who can reach a node now, and who cannot. It answers from what it knows, at once.
type Witnesses interface {
	Witnesses(ctx context.Context, suspect string) []ownership.Witness
}

// Places tells about nodes as places for replicas of a volume, which was read a moment ago. It answers from
// what it knows, at once. A node that is not in the answer is no place.
type Places interface {
	Places(v *v1alpha1.Volume, nodes []string) map[string]Place
}

// Place is a node as a place for a replica: see ownership.Machine.
type Place struct {
	Fits      bool
	Slots     int
	GiveWay   bool
	MakesRoom bool
	Leaving   bool
	// Rank orders the nodes: the first that fits gets the next replica. Equals are taken by name.
	Rank int
}

// Reconciler carries out the rules, volume by volume.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads from the API server. It never has a cache.
	Live    client.Reader
	Contact *Contact
	// Peers, Witnesses and Places may be nil: then no node answers, the nodes' own Leases are the only
	// witnesses, and no node is a place for a replica.
	Peers     Peers
	Witnesses Witnesses
	Places    Places
	// Stirred says that what Witnesses say may have changed. It may be nil: the nodes are looked at each second.
	Stirred <-chan struct{}
	// Attacher is the CSI driver of the volumes if Kubernetes keeps VolumeAttachments for them, empty if it does not.
	Attacher string
	// Leads tells whether this process is the one that writes conditions. All of them decide.
	Leads func() bool
	Clock clock.PassiveClock
	// Rules are ownership.OverseeRules.
	Rules ownership.Chain[ownership.ControllerFacts]
	// FreshID returns a random id, for the first epoch of a volume.
	FreshID func() string
	// Instance is the name of this process, for events.
	Instance string

	// also has other volumes looked at.
	also chan<- event.GenericEvent
}

func (r *Reconciler) teller() teller { return teller{client: r.Client, instance: r.Instance} }

// steps bounds the actions of one call: a volume that needs more of them is looked at again.
const steps = 8

// Reconcile takes all steps that can be taken now about a volume. A volume with one copy costs no request:
// the cached object says so, and its kind cannot change.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cached := &v1alpha1.Volume{}
	if err := r.Client.Get(ctx, request.NamespacedName, cached, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !recorded(cached) {
		return ctrl.Result{}, nil
	}
	for range steps {
		acted, again, err := r.step(ctx, question{name: request.Name})
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("overseeing volume %s: %w", request.Name, err)
		}
		if !acted {
			return ctrl.Result{RequeueAfter: again}, nil
		}
	}
	return ctrl.Result{RequeueAfter: time.Second}, nil
}

// recorded tells whether a Volume is of a kind that has a record of ownership.
func recorded(v *v1alpha1.Volume) bool {
	var one *record.OneCopyError
	_, err := record.From(v)
	return !errors.As(err, &one)
}

// step asks one question and carries its answer out. acted says that the volume must be asked about again
// at once, because the record has changed, or because another process was faster.
func (r *Reconciler) step(ctx context.Context, of question) (acted bool, again time.Duration, err error) {
	q, a, err := r.decide(ctx, of)
	var absent *record.AbsentError
	var one *record.OneCopyError
	switch {
	case errors.As(err, &absent):
		acted, err = begin(ctx, r, of.name)
		return acted, 0, err
	case errors.As(err, &one):
		return false, 0, nil // nothing is there to decide
	case err != nil:
		return false, 0, err
	}
	return r.carryOut(ctx, q, a)
}

func (r *Reconciler) carryOut(ctx context.Context, q *question, a ownership.Action) (acted bool, again time.Duration, err error) {
	labelled := r.steer(ctx, q, &a)
	var ended error
	if a.Reason != ownership.RecordBehind { // a record from a backup calls an earlier owner the owner, and the later one's pods left behind
		ended = errors.Join(r.endPods(ctx, q), detach(ctx, r, q))
	}
	switch a.Verb {
	case ownership.Record:
		if labelled != nil && removes(q.facts.Record, &a) {
			return false, 0, labelled // the scheduler must not choose a node whose replica goes
		}
		err = r.write(ctx, q, &a)
	case ownership.Nothing, ownership.Wait:
		again, err = next(q, &a), r.show(ctx, q, &a)
		if a.Reason == ownership.NoFreeSlot {
			alert(ctx, r, a.Node)
		}
	default:
		err = fmt.Errorf("the rules ask a controller to %v, which only a node can", a.Verb)
	}
	return a.Verb == ownership.Record, again, errors.Join(labelled, ended, err)
}

// decide asks the rules. What the cache does not show proves no absence: before an attachment is taken
// away, the API server is asked which pods want it, and the rules are asked again.
func (r *Reconciler) decide(ctx context.Context, of question) (*question, ownership.Action, error) {
	q, err := r.gather(ctx, of, false)
	if err != nil {
		return nil, ownership.Action{}, err
	}
	a := q.decide(r.Rules)
	if !takesAway(q.facts.Record, &a) {
		return q, a, nil
	}
	if q, err = r.gather(ctx, of, true); err != nil {
		return nil, ownership.Action{}, err
	}
	return q, q.decide(r.Rules), nil
}

// takesAway tells whether an attachment goes because no pod seems to want it.
func takesAway(v *ownership.Volume, a *ownership.Action) bool {
	return v.Kind.Traits().Attaches && !v.Deleting && removes(v, a)
}

// removes tells whether the removal of a replica is about to be recorded.
func removes(v *ownership.Volume, a *ownership.Action) bool {
	if a.Verb != ownership.Record {
		return false
	}
	for i := range a.Next.Replicas {
		e := &a.Next.Replicas[i]
		if old, _ := v.Replica(e.Node); e.State == ownership.Removing && old.State != ownership.Removing {
			return true
		}
	}
	return false
}

const (
	// soon is when a volume is asked about again whose primary may be proved to be stopped any moment.
	// later is the same after a minute of suspicion, and for all else that waits: what may still come then
	// mostly brings an event.
	soon, later = time.Second, 10 * time.Second
	patience    = time.Minute
	// seldom is when a volume is asked about again that lacks a replica: nodes and slots that become free bring
	// no event to it.
	seldom = 30 * time.Second
)

// next is when to ask again although no event comes; zero is never.
func next(q *question, a *ownership.Action) time.Duration {
	f := &q.facts
	due := make([]time.Duration, 0, 4)
	urgent := false
	for _, e := range q.evidence {
		switch {
		case !e.urgent():
			continue
		case e.vouched > 0 && e.suspected < patience:
			due = append(due, min(soon, e.vouched))
		case e.suspected < patience:
			due = append(due, soon)
		}
		urgent = true
	}
	switch {
	case a.Verb == ownership.Wait && f.Watching < ownership.WatchFirst,
		a.Reason == ownership.NoFreeSlot && waitsFor(q) < patience:
		due = append(due, soon)
	case urgent, a.Verb == ownership.Wait, len(q.stranded) > 0, nowhere(q), unowned(q), owedAnAnswer(f.Record):
		due = append(due, later)
	case f.Record.Primary.Phase == ownership.Active && len(f.Record.Replicas) < f.Record.Factor,
		f.Record.Sharing.ManyWriters && len(f.Record.Writing()) > 0: // that a node has given its epoch up, only the node says
		due = append(due, seldom)
	}
	due = append(due, expires(f)...)
	due = append(due, rebuilds(f)...)
	if meta.IsStatusConditionTrue(q.volume.Status.Conditions, v1alpha1.ConditionReplicaAway) {
		due = append(due, later) // another process wrote it, and this one may not have seen the node fall silent
	}
	if len(due) == 0 {
		return 0
	}
	return slices.Min(due)
}

// expires is when the attachments go, or when that is called off because a pod wants the volume. After that moment the
// rule has acted, and events bring what is left.
func expires(f *ownership.ControllerFacts) []time.Duration {
	left := f.Record.ExpireAt.Sub(f.Now)
	if len(f.Wanted) > 0 {
		left -= ownership.ExpireAfter
	}
	if f.Record.ExpireAt.IsZero() || f.Record.Deleting || left <= 0 {
		return nil
	}
	return []time.Duration{max(soon, left)}
}

// rebuilds are when replicas on lost nodes are to be replaced.
func rebuilds(f *ownership.ControllerFacts) (due []time.Duration) {
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if _, has := f.Record.Replica(n.Name); has && n.Lost && n.LostFor < ownership.RebuildDelay {
			due = append(due, max(soon, ownership.RebuildDelay-n.LostFor))
		}
	}
	return due
}

// waitsFor is for how long the volume has said that it waits.
func waitsFor(q *question) time.Duration {
	c := meta.FindStatusCondition(q.volume.Status.Conditions, v1alpha1.ConditionWaiting)
	if c == nil || c.Status != metav1.ConditionTrue {
		return 0
	}
	return q.facts.Now.Sub(c.LastTransitionTime.Time)
}

// alert has the volumes looked at that have an attachment on a node where a pod waits for a slot: one of
// their standbys may be the one that makes way.
func alert(ctx context.Context, r *Reconciler, node string) {
	if r.also == nil {
		return
	}
	for _, request := range r.volumesOn(ctx, map[string]bool{node: true}) {
		select {
		case <-ctx.Done():
			return
		case r.also <- event.GenericEvent{Object: &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: request.Name}}}:
		}
	}
}

func named(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}
