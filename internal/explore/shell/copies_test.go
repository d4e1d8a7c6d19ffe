package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/agent/pooled"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/record"
	"berth.dev/berth/internal/replicate/copies"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// poolOf is the pool of each machine.
var poolOf = provision.PoolRef{Type: provision.LVM, Name: "vg"}

// driver is that of the plan's volumes. The one of pools has volumes with copies here.
func (p *plan) driver() driver.Driver {
	if !p.copies {
		return driver.Disk()
	}
	d := driver.Local()
	d.Kind = ownership.Snapshots
	return d
}

// replicates has a volume replicated to the first machines.
func (w *world) replicates(spec *v1alpha1.VolumeSpec) {
	spec.Replication = v1alpha1.Replication{
		Factor: int32(w.plan.shares), Kind: v1alpha1.ReplicationSnapshots, //nolint:gosec // 2 or 3
		Failover: &v1alpha1.Failover{Automatic: true, MaxDataLoss: &metav1.Duration{Duration: w.plan.loss}},
	}
	for i := range w.plan.shares {
		spec.Replicas = append(spec.Replicas, v1alpha1.ReplicaSpec{Node: string(rune('a' + i)), Pool: poolOf.Name})
	}
}

// approves is an administrator who agrees that a volume goes on from the newest point that its nodes have.
func (w *world) approves() {
	for _, v := range w.volumes {
		o := one[v1alpha1.Volume](w.api, client.ObjectKey{Name: v.name})
		waits := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionWaiting)
		if waits == nil || waits.Status != metav1.ConditionTrue || waits.Reason != string(ownership.PromotionBlocked) {
			continue
		}
		r, err := record.From(o)
		if err != nil {
			w.fail("the record of %s: %v", v.short, err)
			return
		}
		var best lineage.Point
		for i := range r.Replicas {
			c := w.machine(r.Replicas[i].Node).copyOf(v.name)
			if at := r.Newest(c.Points); at.Seq > best.Seq {
				best = at
			}
		}
		w.count("losses agreed to")
		w.tells("administrator", "agrees that %s goes on from %v", v.short, best)
		_ = edit(w.api, client.ObjectKey{Name: v.name}, func(o *v1alpha1.Volume) {
			o.Status.Ownership.Approved = &v1alpha1.Point{Epoch: v1alpha1.Epoch{Number: int64(best.Epoch.Number), ID: best.Epoch.ID}, Seq: int64(best.Seq)} //nolint:gosec // small
		})
	}
}

// copyOf is what a machine keeps of a copy.
func (m *machine) copyOf(volume string) provision.Replica {
	s, err := memory.NewReplicator(memory.New(m.pool, nil), time.Now).State(m.w.ctx, volume)
	if err != nil {
		return provision.Replica{}
	}
	return s
}

// vault has the copies of an agent's machine, as internal/agent puts it together, over a pool in memory.
type vault struct {
	*pooled.Pools
	p       *process
	shelves *shelves
}

var _ owner.Pools = (*vault)(nil)

func newVault(p *process) *vault {
	store := memory.New(p.m.pool, nil)
	v := &vault{p: p, shelves: &shelves{
		Provisioner: store, mounter: mounter{p: p}, replicas: &replicas{memory.NewReplicator(store, time.Now), p},
	}}
	v.Pools = pooled.New(pooled.Config{Node: p.m.name, Disks: v.shelves, Report: whole{}, Objects: objects{}, Mounts: p.m.table, Clock: clock.RealClock{}})
	return v
}

// objects are the API's, as an agent sees them.
type objects struct{}

// Pools implements pooled.Objects, and so do the others.
func (objects) Pools(context.Context, string) ([]string, error) { return []string{poolOf.Name}, nil }

func (o objects) ClassOf(ctx context.Context, _ string) (*v1alpha1.PoolClass, error) {
	return o.Class(ctx, "")
}

func (objects) Class(context.Context, string) (*v1alpha1.PoolClass, error) {
	return &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{poolOf.Name}},
	}}, nil
}

// whole is the report of a machine whose pool is always there.
type whole struct{}

func (whole) MayHaveVolume(string) bool                 { return false }
func (whole) HasRead(string) (bool, error)              { return true, nil }
func (whole) Pool(ref provision.PoolRef) provision.Pool { return provision.Pool{PoolRef: ref} }
func (whole) Deleted(string)                            {}

// shelves are the volumes and mounts of an agent's machine.
type shelves struct {
	*memory.Provisioner
	mounter
	replicas *replicas
}

// ReplicatorOf implements provision.Replicators.
func (s *shelves) ReplicatorOf(context.Context, string) (provision.Replicator, error) {
	return s.replicas, nil
}

func (s *shelves) call(ctx context.Context, what, id string, does func() (provision.Volume, error)) (v provision.Volume, err error) {
	err = s.p.effect(ctx, local, what, id, func() error {
		v, err = does()
		return err
	})
	return v, err
}

// Get implements provision.Provisioner, and so do the others.
func (s *shelves) Get(ctx context.Context, id string) (provision.Volume, error) {
	return s.call(ctx, "Get", id, func() (provision.Volume, error) { return s.Provisioner.Get(ctx, id) })
}

func (s *shelves) Create(ctx context.Context, r provision.CreateRequest) (provision.Volume, error) {
	return s.call(ctx, "Create", r.ID, func() (provision.Volume, error) { return s.Provisioner.Create(ctx, r) })
}

func (s *shelves) Expand(ctx context.Context, r provision.ExpandRequest) (provision.Volume, error) {
	return s.call(ctx, "Expand", r.ID, func() (provision.Volume, error) { return s.Provisioner.Expand(ctx, r) })
}

func (s *shelves) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	return s.call(ctx, "Format", r.ID, func() (provision.Volume, error) { return s.Provisioner.Format(ctx, r) })
}

func (s *shelves) Delete(ctx context.Context, id string) error {
	return s.p.effect(ctx, local, "Delete", id, func() error {
		defer s.p.w.oracle.survives(s.p, "Delete", id)
		return s.Provisioner.Delete(ctx, id)
	})
}

// replicas are the copies of an agent's machine. Each change is an effect.
type replicas struct {
	*memory.Replicator
	p *process
}

func (r *replicas) does(ctx context.Context, what, id string, happens func() error) error {
	return r.p.effect(ctx, local, what, id, happens)
}

// loses is does for a change that may take data away.
func (r *replicas) loses(ctx context.Context, what, id string, happens func() error) error {
	return r.does(ctx, what, id, func() error {
		defer r.p.w.oracle.survives(r.p, what, id)
		return happens()
	})
}

// State implements provision.Replicator, and so do the others.
func (r *replicas) State(ctx context.Context, id string) (s provision.Replica, err error) {
	err = r.does(ctx, "State", id, func() error {
		s, err = r.Replicator.State(ctx, id)
		return err
	})
	return s, err
}

func (r *replicas) Mark(ctx context.Context, id string, m provision.Mark) error {
	return r.does(ctx, "Mark", id, func() error {
		err := r.Replicator.Mark(ctx, id, m)
		if err != nil {
			r.p.w.tells(r.p.name, "cannot keep what it promised of %s: %v", r.p.w.short(id), err)
		} else {
			s := r.p.m.copyOf(id)
			r.p.w.tells(r.p.name, "keeps of %s: promised %v, opened %v, closed %v", r.p.w.short(id), s.Promise.Epoch, s.Opened, s.Closed)
		}
		return err
	})
}

func (r *replicas) Snapshot(ctx context.Context, q provision.PointRequest) error {
	return r.does(ctx, "Snapshot", q.Volume, func() error {
		err := r.Replicator.Snapshot(ctx, q)
		if err == nil {
			r.p.w.oracle.names(r.p, q.Volume, q.Point, r.p.m.pool.Read(q.Volume))
		}
		return err
	})
}

func (r *replicas) Preserve(ctx context.Context, id string, common lineage.Point) error {
	return r.does(ctx, "Preserve", id, func() error {
		err := r.Replicator.Preserve(ctx, id, common)
		if err == nil {
			r.p.w.count("writes set aside")
		}
		return err
	})
}

func (r *replicas) Hold(ctx context.Context, id string, h ownership.Hold) error {
	return r.does(ctx, "Hold", id, func() error { return r.Replicator.Hold(ctx, id, h) })
}

func (r *replicas) RollBack(ctx context.Context, id string, to lineage.Point) error {
	return r.loses(ctx, "RollBack", id, func() error { return r.Replicator.RollBack(ctx, id, to) })
}

func (r *replicas) Drop(ctx context.Context, id string, points []lineage.Point) error {
	return r.loses(ctx, "Drop", id, func() error { return r.Replicator.Drop(ctx, id, points) })
}

func (r *replicas) Abort(ctx context.Context, id string) error {
	return r.loses(ctx, "Abort", id, func() error { return r.Replicator.Abort(ctx, id) })
}

func (r *replicas) Writable(ctx context.Context, id string) (v provision.Volume, err error) {
	err = r.loses(ctx, "Writable", id, func() error {
		v, err = r.Replicator.Writable(ctx, id)
		return err
	})
	return v, err
}

// Receive takes all of the stream from the pipe before it lets time pass: no time passes while a goroutine reads a
// pipe. The link may have been cut in it: the rest is missing then.
func (r *replicas) Receive(ctx context.Context, h provision.StreamHeader, pipe *os.File) error {
	bytes, err := io.ReadAll(pipe)
	if err != nil {
		return err
	}
	if d := r.p.dice("cut", h.Volume); r.p.w.troubled() && d.chance(8) {
		bytes = bytes[:d.below(len(bytes)+1)]
	}
	return r.loses(ctx, "Receive", h.Volume, func() error {
		out, in, err := os.Pipe()
		if err != nil {
			return err
		}
		go func() { _, _ = in.Write(bytes); _ = in.Close() }()
		defer func() { _ = out.Close() }()
		if err = r.Replicator.Receive(ctx, h, out); err == nil {
			r.p.w.oracle.arrives(r.p, h.Volume, h.Target)
		}
		return err
	})
}

// Fetch implements owner.Pools. A stream goes from the product's Stock to the product's Sink, and what is between them
// is played.
func (v *vault) Fetch(ctx context.Context, f owner.Fetch) error {
	sink := &copies.Sink{Copies: v.shelves.replicas, Node: v.p.m.name, Volume: f.Volume}
	want := wire.Want{Stream: wire.Stream{
		Volume: f.Volume, From: f.From, To: v.p.m.name, Epoch: f.Epoch, Base: f.Base, Target: f.To, Format: v.shelves.replicas.Abilities().Format,
	}}
	half, found, err := sink.Half(ctx)
	switch {
	case err != nil:
		return err
	case found && stream.Continues(want.Stream, half) == nil:
		want.Resume = half.Resume
	case found:
		if err := sink.Discard(ctx); err != nil {
			return err
		}
	}
	offer, bytes, err := v.asks(ctx, want)
	if wire.ReasonOf(err) == wire.CannotResume && !want.Resume.IsZero() {
		return errors.Join(err, sink.Discard(ctx))
	}
	if err != nil {
		return err
	}
	intake, err := sink.Begin(ctx, stream.Header{Offer: offer, Resume: want.Resume})
	if err != nil {
		return err
	}
	if _, err = intake.Write(bytes); err == nil {
		err = intake.Commit(ctx)
	}
	if err != nil {
		return errors.Join(err, intake.Abort(stream.After(err).Keep))
	}
	return nil
}

var errCut = &wire.Error{Reason: wire.Cut, Message: "the link was cut"}

// asks gets a stream from another node.
func (v *vault) asks(ctx context.Context, want wire.Want) (offer wire.Offer, bytes []byte, err error) {
	from := v.p.w.machine(want.From)
	d := v.p.dice("stream", want.Volume)
	if err := v.p.passes(ctx, d.upTo(10*time.Millisecond)); err != nil {
		return offer, nil, err
	}
	a := from.agentNow()
	reached := func() bool { return from.runs() && from.linked(v.p.m) && !a.p.isDead() }
	if !reached() {
		return offer, nil, errCut
	}
	source, err := a.owner.Stock(a.vault.Stock()).Open(ctx, want)
	if err != nil {
		return offer, nil, err
	}
	offer = source.Header()
	offer.ID, offer.Volume, offer.From, offer.To = want.ID, want.Volume, want.From, want.To
	bytes, err = io.ReadAll(source)
	if closed := source.Close(false); err == nil {
		err = closed
	}
	if err == nil && !reached() {
		err = errCut
	}
	return offer, bytes, err
}
