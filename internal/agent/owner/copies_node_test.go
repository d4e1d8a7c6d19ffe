package owner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/journal/journaltest"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

var copyPool = provision.PoolRef{Type: provision.LVM, Name: "vg"}

const copyUnit = 4 << 20

// keeper is a node with a pool: what survives its agent, and what survives its loss of power.
type keeper struct {
	f     *fleet
	name  string
	boot  int
	disk  *journaltest.Disk // of the journal
	disks *memory.Disks
	agent *process
	owner *owner.Owner
	poked bool
	// epoch is that of the mount; zero if the volume is not mounted.
	epoch   lineage.Epoch
	guarded lineage.Epoch // what the guard knows to be open
	fenced  bool
	renewed time.Duration // when the lease was renewed
	slept   bool
	apart   bool // from its peers
	// wanted: a pod is bound to this node; served: it has the volume.
	wanted, served bool
	said           error            // the last answer to the kubelet
	believed       *v1alpha1.Volume // by a mistaken agent
}

func (k *keeper) bootID() string { return fmt.Sprintf("%s-boot%d", k.name, k.boot) }

// boots begins a new boot of the machine. Its guard starts fenced, and nothing is mounted.
func (k *keeper) boots() {
	k.boot++
	k.epoch, k.guarded, k.fenced, k.slept, k.served = lineage.Epoch{}, lineage.Epoch{}, true, false, false
	k.believed, k.renewed = nil, k.f.now
	k.starts()
}

// starts begins a new life of the agent.
func (k *keeper) starts() {
	p := &process{busy: map[string]bool{}}
	k.agent, k.poked = p, true
	pool := memory.New(k.disks, nil)
	w := &copyWorld{Replicator: memory.NewReplicator(pool, func() time.Time { return k.f.time() }), pool: pool, k: k, p: p, j: journal.Journal{Files: k.disk}}
	k.owner = owner.New(owner.Config{
		Node: k.name, Boot: k.bootID(), World: w, Medium: owner.Copies(w),
		Locks: &locks{s: k.f.s, held: map[string]bool{}, none: k.f.mistake.NoLocks},
		Rules: ownership.NodeRules(), Log: silent,
		Poke: func(string, time.Duration) { k.poked = true },
		Background: func(work func(context.Context)) {
			k.f.s.begin(p, "fetch", func() { work(k.f.ctx) })
		},
	})
}

// replicator reads the node's copy, as a process of its own would.
func (k *keeper) replicator() *memory.Replicator {
	return memory.NewReplicator(memory.New(k.disks, nil), k.f.time)
}

func (k *keeper) state() provision.Replica {
	s, _ := k.replicator().State(k.f.ctx, theVolume)
	return s
}

func (k *keeper) answers() bool { return !k.slept && !k.agent.dead }

// peer is the node's answer to a controller.
func (k *keeper) peer() (p ownership.Peer, known bool) {
	kept, _, err := journal.Journal{Files: k.disk}.Load(theVolume)
	s := k.state()
	p = ownership.Peer{Node: k.name, Copy: s.Copy}
	p.Copy.Flushed = kept.Flushed
	return p, err == nil
}

// unmounts takes the volume off the node.
func (k *keeper) unmounts() { k.epoch = lineage.Epoch{} }

// writes lets the pod write once.
func (k *keeper) writes() {
	f := k.f
	if k.epoch.IsZero() || k.slept {
		return
	}
	f.ids++
	f.wrote(k, fmt.Sprintf("%s%d;", k.name, f.ids))
}

// copyWorld is what one life of an agent does. Each effect may fail, before or after it has happened.
type copyWorld struct {
	noPods
	*memory.Replicator
	pool *memory.Provisioner
	k    *keeper
	p    *process
	j    journal.Journal
}

var (
	_ owner.World = (*copyWorld)(nil)
	_ owner.Pools = (*copyWorld)(nil)
)

// effect gives way, and then lets the effect happen, or fail.
func (w *copyWorld) effect(name string, do func() error) error {
	f := w.k.f
	f.plot.reaches(f, w.k, name)
	if !f.s.yield() {
		return errDead
	}
	f.effects = append(f.effects, name)
	var err error
	if rare := 120 * f.calm; !f.faulty || !f.s.chance(rare) {
		err = do()
	} else {
		if err = errFault; f.s.chance(2) {
			_ = do() // the answer is lost
		}
	}
	f.judge(w.k, name)
	return err
}

func (w *copyWorld) Now() time.Time { return w.k.f.time() }

func (w *copyWorld) FreshID() string {
	w.k.f.ids++
	return fmt.Sprintf("id%d", w.k.f.ids)
}

func (w *copyWorld) Load(volume string) (journal.Kept, bool, error) { return w.j.Load(volume) }
func (w *copyWorld) Volumes() ([]string, error)                     { return w.j.Volumes() }

func (w *copyWorld) Store(k journal.Kept) error {
	return w.effect("Store", func() error { return w.j.Store(k) })
}

func (w *copyWorld) Erase(volume string) error {
	return w.effect("Erase", func() error { return w.j.Erase(volume) })
}

func (w *copyWorld) Mounts(provision.Content) ([]string, error) {
	if w.k.epoch.IsZero() {
		return nil, nil
	}
	return []string{staged}, nil
}

func (w *copyWorld) Unmount(context.Context, string) error {
	return w.effect("Unmount", func() error { w.k.unmounts(); return nil })
}

func (w *copyWorld) Read(_ context.Context, volume string) (v *v1alpha1.Volume, err error) {
	f := w.k.f
	err = w.effect("Read", func() error {
		v, err = f.read()
		return err
	})
	switch {
	case err != nil && f.mistake.NilOnReadError:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "volumes"}, volume)
	case err != nil:
		return nil, err
	case w.k.believed != nil:
		v, w.k.believed = w.k.believed, nil
	case f.mistake.StaleReads && f.s.chance(2):
		v = f.versions[max(0, len(f.versions)-1-f.s.dice.IntN(8))].DeepCopy()
	}
	return v, nil
}

func (w *copyWorld) Replace(_ context.Context, v *v1alpha1.Volume) error {
	err := w.effect("Replace", func() error { return w.k.f.replace(w.k.name, v) })
	if w.k.f.mistake.ConflictSwallowed && apierrors.IsConflict(err) {
		w.k.believed = v.DeepCopy()
		return nil
	}
	return err
}

func (w *copyWorld) Ask(ctx context.Context, _ string, nodes []string) (out []ownership.Peer) {
	f := w.k.f
	if !f.s.yield() {
		return nil
	}
	for _, n := range f.keepers {
		if !slices.Contains(nodes, n.name) || !n.answers() || n.apart || w.k.apart {
			continue
		}
		p, may, err := f.peerOf(ctx, n, w.k.name)
		if err == nil && may {
			out = append(out, p)
		}
	}
	return out
}

func (w *copyWorld) Standing(context.Context) (owner.Standing, error) {
	return owner.Standing{SinceRenewal: w.k.f.now - w.k.renewed, Fenced: w.k.fenced}, w.effect("Standing", func() error { return nil })
}

func (w *copyWorld) OpenEpoch(_ context.Context, _ string, e lineage.Epoch, _ provision.Content, reserved bool) error {
	return w.effect("OpenEpoch", func() error {
		k := w.k
		switch {
		case reserved:
			return errors.New("the guard would not reset the machine, and nothing keeps late writes out of the copy")
		case k.fenced || k.f.now-k.renewed >= ownership.SelfFenceAfter:
			return errors.New("the guard is fenced")
		case !k.guarded.IsZero() && k.guarded != e:
			return errors.New("another epoch is open at the guard")
		}
		if !k.f.mistake.GuardNotTold {
			k.guarded = e
		}
		return nil
	})
}

func (w *copyWorld) CloseEpoch(_ context.Context, _ string, e lineage.Epoch) error {
	return w.effect("CloseEpoch", func() error {
		k := w.k
		switch {
		case k.guarded.IsZero():
			return nil
		case !k.epoch.IsZero() || k.guarded != e:
			return errors.New("something holds the volume, or another epoch is open")
		}
		k.guarded = lineage.Epoch{}
		return nil
	})
}

func (w *copyWorld) AllClosed(context.Context) error {
	return w.effect("AllClosed", func() error {
		k := w.k
		if c := k.state(); !k.guarded.IsZero() || !c.Opened.IsZero() && c.Opened.Number > c.Closed.Number {
			k.f.fail("%s says that every epoch is closed, the guard knows of %v, and the copy keeps %v as open", k.name, k.guarded, c.Opened)
		}
		k.fenced, k.renewed = false, k.f.now
		return nil
	})
}

func (w *copyWorld) Mark(ctx context.Context, id string, m provision.Mark) error {
	return w.effect("Mark", func() error { return w.Replicator.Mark(ctx, id, m) })
}

func (w *copyWorld) Snapshot(ctx context.Context, r provision.PointRequest) error {
	return w.effect("Snapshot", func() error {
		err := w.Replicator.Snapshot(ctx, r)
		if err == nil {
			w.k.f.named(r.Point, w.k.disks.Read(theVolume))
		}
		return err
	})
}

func (w *copyWorld) Preserve(ctx context.Context, id string, common lineage.Point) error {
	return w.effect("Preserve", func() error { return w.Replicator.Preserve(ctx, id, common) })
}

func (w *copyWorld) RollBack(ctx context.Context, id string, to lineage.Point) error {
	return w.effect("RollBack", func() error {
		err := w.Replicator.RollBack(ctx, id, to)
		if w.k.f.mistake.ForgetsBranches && err == nil {
			for _, b := range w.k.state().Branches {
				_ = w.Forget(ctx, id, b.Tip)
			}
		}
		return err
	})
}

func (w *copyWorld) Drop(ctx context.Context, id string, points []lineage.Point) error {
	return w.effect("Drop", func() error { return w.Replicator.Drop(ctx, id, points) })
}

func (w *copyWorld) Abort(ctx context.Context, id string) error {
	return w.effect("Abort", func() error { return w.Replicator.Abort(ctx, id) })
}

func (w *copyWorld) Writable(ctx context.Context, id string) (v provision.Volume, err error) {
	err = w.effect("Writable", func() error {
		if w.k.f.mistake.MountsAsItIs {
			v, err = w.pool.Get(ctx, id)
			return err
		}
		v, err = w.Replicator.Writable(ctx, id)
		return err
	})
	return v, err
}

func (w *copyWorld) Make(ctx context.Context, v *v1alpha1.Volume, size int64) error {
	return w.effect("Make", func() error {
		_, err := w.pool.Expand(ctx, provision.ExpandRequest{ID: v.Name, Size: size})
		if errors.Is(err, provision.ErrNotFound) {
			_, err = w.pool.Create(ctx, provision.CreateRequest{ID: v.Name, Pool: copyPool, Size: size})
		}
		return err
	})
}

func (w *copyWorld) Destroy(ctx context.Context, id string) error {
	return w.effect("Destroy", func() error { return w.pool.Delete(ctx, id) })
}

// Fetch is a stream: asked for, begun at its source, under way, and applied. The link may be cut in it, and what
// came so far is kept.
func (w *copyWorld) Fetch(ctx context.Context, r owner.Fetch) error {
	f := w.k.f
	i := slices.IndexFunc(f.keepers, func(n *keeper) bool { return n.name == r.From })
	var h provision.StreamHeader
	var bytes []byte
	resume := ""
	if half := w.k.state().Receiving; half != nil && half.Base == r.Base && half.Target == r.To && half.From == r.From {
		resume = half.Token
	}
	if err := w.effect("Ask", func() (err error) {
		from := f.keepers[i]
		if !from.answers() || from.apart || w.k.apart {
			return errFault
		}
		h, bytes, err = from.sends(ctx, r, resume, w.k.name)
		return err
	}); err != nil {
		return err
	}
	return w.effect("Receive", func() error {
		if f.faulty && f.s.chance(6) {
			bytes = bytes[:f.s.dice.IntN(len(bytes)+1)]
		}
		out, in, err := os.Pipe()
		if err != nil {
			return err
		}
		go func() { _, _ = in.Write(bytes); _ = in.Close() }()
		defer func() { _ = out.Close() }()
		h.Resume = resume
		if err = w.Receive(ctx, h, out); err == nil {
			f.received++
			f.arrived(w.k, h.Target)
		} else if resume != "" {
			_ = w.Replicator.Abort(ctx, r.Volume)
		}
		return err
	})
}

// sends is the source's end of a stream: it holds the target, and reads it.
func (k *keeper) sends(ctx context.Context, r owner.Fetch, resume, to string) (h provision.StreamHeader, bytes []byte, err error) {
	source := k.replicator()
	if err := source.Hold(ctx, r.Volume, ownership.Hold{For: to, Point: r.To, Until: k.f.time().Add(ownership.HoldFor)}); err != nil {
		return h, nil, err
	}
	q := provision.SendRequest{Volume: r.Volume, Base: r.Base, Target: r.To, Resume: resume}
	if h, err = k.state().Header(source.Abilities(), q); err != nil {
		return h, nil, err
	}
	h.From = k.name
	out, in, err := os.Pipe()
	if err != nil {
		return h, nil, err
	}
	defer func() { _ = out.Close() }()
	sent := make(chan error, 1)
	go func() { sent <- source.Send(ctx, q, in); _ = in.Close() }()
	bytes, err = io.ReadAll(out)
	return h, bytes, errors.Join(err, <-sent)
}
