package record

import (
	"cmp"
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// From returns the record of a Volume. The error is *AbsentError, *UnreadError or *OneCopyError.
func From(v *v1alpha1.Volume) (*ownership.Volume, error) {
	r := &check{}
	record := r.parameters(v)
	switch o := v.Status.Ownership; {
	case r.err != nil:
		return nil, &UnreadError{Volume: v.Name, Cause: r.err}
	case record.Kind == ownership.OneCopy:
		return nil, &OneCopyError{Volume: v.Name}
	case o == nil:
		return nil, &AbsentError{Volume: v.Name}
	default:
		r.decided(&record, o)
	}
	if r.err != nil {
		return nil, &UnreadError{Volume: v.Name, Cause: r.err}
	}
	return &record, nil
}

// Parameters returns the record of a Volume before its first: the parts of it that the spec and the metadata have,
// and nothing that the rules decide. The error is *UnreadError or *OneCopyError.
func Parameters(v *v1alpha1.Volume) (*ownership.Volume, error) {
	r := &check{}
	record := r.parameters(v)
	switch {
	case r.err != nil:
		return nil, &UnreadError{Volume: v.Name, Cause: r.err}
	case record.Kind == ownership.OneCopy:
		return nil, &OneCopyError{Volume: v.Name}
	}
	return &record, nil
}

// parameters are the parts of the record that the spec and the metadata have.
func (r *check) parameters(v *v1alpha1.Volume) ownership.Volume {
	p := &v.Spec.Replication
	record := ownership.Volume{
		Kind:     ownership.Kind(index(r, "spec.replication.kind", kinds, p.Kind)),
		Factor:   int(p.Factor),
		Size:     v.Spec.Capacity.Value(),
		Deleting: !v.DeletionTimestamp.IsZero(),
	}
	r.within("spec.capacity", record.Size, 0, maxSize)
	r.within("spec.replication.factor", int64(p.Factor), 1, maxReplicas)
	if p.Failover != nil {
		record.Failover.Automatic = p.Failover.Automatic
		if p.Failover.MaxDataLoss != nil {
			record.Failover.MaxDataLoss = p.Failover.MaxDataLoss.Duration
			r.that(record.Failover.MaxDataLoss >= 0, "spec.replication.failover.maxDataLoss is negative")
		}
	}
	r.that((p.Attachments != nil) == record.Kind.Traits().Attaches, "spec.replication.attachments is for kind Attachments, and required there")
	if p.Attachments != nil {
		r.within("spec.replication.attachments.maxShares", int64(p.Attachments.MaxShares), 1, maxReplicas)
		record.Sharing = ownership.Sharing{MaxShares: int(p.Attachments.MaxShares), Yields: p.Attachments.Yields, Persistent: p.Attachments.Persistent,
			ManyWriters: v.Spec.Sharing == v1alpha1.Shared}
	}
	return record
}

// decided fills in what the rules have written.
func (r *check) decided(v *ownership.Volume, o *v1alpha1.Ownership) {
	v.Epoch = r.epoch("epoch", &o.Epoch)
	v.Primary = ownership.Primary{
		Node:  r.text("primary.node", o.Primary.Node, maxName),
		Boot:  r.text("primary.boot", o.Primary.Boot, maxID),
		Phase: ownership.Phase(index(r, "primary.phase", phases, o.Primary.Phase)),
	}
	v.RecoveryPoint = r.point("recoveryPoint", o.RecoveryPoint)
	v.Clean = o.Clean
	v.Failover.Approved = r.point("approved", o.Approved)
	v.ExpireAt = r.clock("expireAt", o.ExpireAt)
	r.count("lineage", len(o.Lineage), lineage.MaxBranches)
	for i := range o.Lineage {
		b := &o.Lineage[i]
		v.Lineage = append(v.Lineage, lineage.Branch{Epoch: r.epoch("lineage", &b.Epoch), From: r.point("lineage.from", b.From)})
	}
	r.losses(v, o.Losses)
	r.keys(v, o.Keys)
	v.FenceRequest = r.request(o.FenceRequest)
	r.writersOf(v, o.Writers)
	r.entries(v, o.Replicas)
	r.whole(v)
}

func (r *check) losses(v *ownership.Volume, losses []v1alpha1.Loss) {
	r.count("losses", len(losses), maxLosses)
	for i := range losses {
		l := &losses[i]
		v.Losses = append(v.Losses, ownership.Loss{Epoch: r.epoch("losses.epoch", &l.Epoch), Kept: r.point("losses.kept", &l.Kept), Known: r.point("losses.known", l.Known)})
	}
}

func (r *check) keys(v *ownership.Volume, keys []v1alpha1.ReservationKey) {
	r.count("keys", len(keys), maxKeys)
	for i := range keys {
		k := &keys[i]
		v.Keys = append(v.Keys, ownership.Key{Node: r.name("keys.node", k.Node), Epoch: r.epoch("keys.epoch", &k.Epoch), Fence: k.Fence})
	}
}

func (r *check) request(q *v1alpha1.FenceRequest) ownership.FenceRequest {
	if q == nil {
		return ownership.FenceRequest{}
	}
	return ownership.FenceRequest{Executor: r.name("fenceRequest.executor", q.Executor), Epoch: r.epoch("fenceRequest.epoch", &q.Epoch)}
}

// writersOf fills in the writers besides the primary, and the primary's fence request.
func (r *check) writersOf(v *ownership.Volume, writers []v1alpha1.Writer) {
	r.that(v.Sharing.ManyWriters || len(writers) == 0, "writers are for a volume with sharing Shared")
	r.count("writers", len(writers), maxReplicas+1)
	for i := range writers {
		w := &writers[i]
		writer := ownership.Writer{
			Primary: ownership.Primary{Node: r.name("writers.node", w.Node), Boot: r.text("writers.boot", w.Boot, maxID), Phase: ownership.Phase(index(r, "writers.phase", phases, w.Phase))},
			Epoch:   r.epoch("writers.epoch", &w.Epoch), FenceRequest: r.request(w.FenceRequest),
		}
		if w.Node != v.Primary.Node {
			v.Writers = append(v.Writers, writer)
			continue
		}
		r.that(writer.Primary == v.Primary && writer.Epoch == v.Epoch, "the primary is another writer than writers says")
		v.FenceRequest = writer.FenceRequest
	}
	slices.SortFunc(v.Writers, func(a, b ownership.Writer) int { return cmp.Compare(a.Primary.Node, b.Primary.Node) })
}

// entries come in order of node names, which the rules rely on, whatever order a person wrote.
func (r *check) entries(v *ownership.Volume, entries []v1alpha1.OwnedReplica) {
	r.count("replicas", len(entries), maxReplicas)
	for i := range entries {
		e := &entries[i]
		r.within("replicas.tries", int64(e.Tries), 0, maxTries)
		v.Replicas = append(v.Replicas, ownership.Replica{
			Node:     r.name("replicas.node", e.Node),
			State:    ownership.State(index(r, "replicas.state", states, e.State)),
			Point:    r.point("replicas.point", e.Point),
			Unstaged: r.optional("replicas.unstaged", e.Unstaged),
			Fenced:   r.optional("replicas.fenced", e.Fenced),
			Tries:    int(e.Tries),
			RetryAt:  r.clock("replicas.retryAt", e.RetryAt),
		})
	}
	slices.SortFunc(v.Replicas, func(a, b ownership.Replica) int { return cmp.Compare(a.Node, b.Node) })
}
