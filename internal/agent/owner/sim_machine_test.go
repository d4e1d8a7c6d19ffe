package owner_test

import (
	"context"
	"errors"
	"fmt"
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
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// machine is a node: what survives its agent, and what survives its loss of power.
type machine struct {
	c    *cluster
	name string
	boot int
	disk *journaltest.Disk // of the journal
	// kernel has the pages of the shared disk, and device is open while the volume is mounted, in
	// the epoch that the agent had opened.
	kernel  *simdisk.Node
	device  *simdisk.Device
	epoch   lineage.Epoch
	binds   []string        // where pods have the volume
	late    []simdisk.Write // commands on their way
	guarded lineage.Epoch   // the epoch that the guard knows to be open
	fenced  bool
	renewed time.Duration // when the lease was renewed
	slept   bool
	agent   *process
	owner   *owner.Owner
	poked   bool
	// wanted: a pod is bound to this node; served: it has the volume.
	wanted, served bool
	giving         bool             // the kubelet has asked to let go of it
	said           error            // the last answer to the kubelet
	believed       *v1alpha1.Volume // by a mistaken agent
	closed         uint64           // the newest epoch that it kept as given up
}

const staged = "/stage"

func (m *machine) bootID() string { return fmt.Sprintf("%s-boot%d", m.name, m.boot) }

// starts begins a new life of the agent.
func (m *machine) starts() {
	m.agent = &process{m: m, busy: map[string]bool{}}
	m.poked = true
	p := m.agent
	w := &world{Disks: m.kernel, m: m, p: p, j: journal.Journal{Files: m.disk}}
	m.owner = owner.New(owner.Config{
		Node: m.name, Boot: m.bootID(), World: m.c.around(w),
		Medium: owner.Attachments(w, func(*v1alpha1.Volume) (shared.Disk, error) { return theDisk, nil }),
		Locks:  &locks{s: m.c.s, held: map[string]bool{}, none: m.c.mistake.NoLocks},
		Rules:  ownership.NodeRules(), Log: m.log(),
		Poke: func(string, time.Duration) { m.poked = true },
		Background: func(work func(context.Context)) {
			m.c.s.begin(p, "move", func() { work(m.c.ctx) })
		},
	})
}

// world is what one life of an agent does to its machine and to others. Each effect may fail, before
// or after it has happened.
type world struct {
	noPods
	shared.Disks
	m *machine
	p *process
	j journal.Journal
}

var _ owner.World = (*world)(nil)

var errFault = errors.New("it does not work now")

// effect gives way, and then lets the effect happen, or fail.
func (w *world) effect(name string, f func() error) error {
	c := w.m.c
	c.plot.reaches(c, w.m, name)
	if !c.s.yield() {
		return errDead
	}
	c.effects = append(c.effects, name)
	rare := 150 * c.calm
	if name == "Store" {
		rare = 30 // the node's own disk is full
	}
	if !c.faulty || !c.s.chance(rare) {
		return f()
	}
	if c.s.chance(2) {
		_ = f() // the answer is lost
	}
	return errFault
}

func (w *world) Now() time.Time { return time.Unix(0, 0).Add(w.m.c.now) }

func (w *world) FreshID() string {
	w.m.c.ids++
	return fmt.Sprintf("id%d", w.m.c.ids)
}

func (w *world) Load(volume string) (k journal.Kept, found bool, err error) {
	err = w.effect("Load", func() error {
		k, found, err = w.j.Load(volume)
		return err
	})
	return k, found, err
}

func (w *world) Volumes() ([]string, error) { return w.j.Volumes() }

func (w *world) Store(k journal.Kept) error {
	err := w.effect("Store", func() error {
		err := w.j.Store(k)
		if err == nil {
			w.m.c.judgeKept(w.m, k)
		}
		return err
	})
	if w.m.c.mistake.NilOnStoreError && errors.Is(err, errFault) {
		return nil
	}
	return err
}

func (w *world) Erase(volume string) error {
	return w.effect("Erase", func() error { return w.j.Erase(volume) })
}

func (w *world) Mounts(provision.Content) ([]string, error) {
	if w.m.device == nil {
		return w.m.binds, nil
	}
	return append([]string{staged}, w.m.binds...), nil
}

func (w *world) Unmount(context.Context, string) error {
	return w.effect("Unmount", func() error {
		if w.m.c.stuck == nil {
			w.m.unmounts()
		}
		return w.m.c.stuck
	})
}

func (w *world) Read(_ context.Context, volume string) (v *v1alpha1.Volume, err error) {
	c := w.m.c
	err = w.effect("Read", func() error {
		v, err = c.read()
		c.s.now.readAt = c.revision
		return err
	})
	switch {
	case err != nil && c.mistake.NilOnReadError:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "volumes"}, volume)
	case err != nil:
		return nil, err
	case w.m.believed != nil:
		v, w.m.believed = w.m.believed, nil
	case c.mistake.StaleReads && c.s.chance(2):
		v = c.versions[max(0, len(c.versions)-1-c.s.dice.IntN(8))].DeepCopy()
	}
	return v, nil
}

func (w *world) Replace(_ context.Context, v *v1alpha1.Volume) error {
	err := w.effect("Replace", func() error { return w.m.c.replace(w.m.name, v) })
	if w.m.c.mistake.ConflictSwallowed && apierrors.IsConflict(err) {
		w.m.believed = v.DeepCopy()
		return nil
	}
	return err
}

func (w *world) Ask(_ context.Context, _ string, nodes []string) (out []ownership.Peer) {
	if !w.m.c.s.yield() {
		return nil
	}
	for _, n := range w.m.c.machines {
		switch {
		case !slices.Contains(nodes, n.name):
		case !n.answers():
			w.m.c.unanswered++
		default:
			if p, known := n.peer(); known {
				out = append(out, p)
			}
		}
	}
	return out
}

func (w *world) Standing(context.Context) (owner.Standing, error) {
	return owner.Standing{SinceRenewal: w.m.c.now - w.m.renewed, Fenced: w.m.fenced}, w.effect("Standing", func() error { return nil })
}

func (w *world) OpenEpoch(_ context.Context, _ string, e lineage.Epoch, _ provision.Content, reserved bool) error {
	return w.effect("OpenEpoch", func() error {
		m := w.m
		switch {
		case !reserved:
			return errors.New("the guard would reset the machine for a disk that keeps late writes out")
		case m.fenced || m.c.now-m.renewed >= ownership.SelfFenceAfter:
			return errors.New("the guard is fenced")
		case !m.guarded.IsZero() && m.guarded != e:
			return errors.New("another epoch is open at the guard")
		}
		if !m.c.mistake.GuardNotTold {
			m.guarded = e
		}
		return nil
	})
}

func (w *world) CloseEpoch(_ context.Context, _ string, e lineage.Epoch) error {
	return w.effect("CloseEpoch", func() error {
		m := w.m
		switch {
		case m.guarded.IsZero():
			return nil
		case m.device != nil || m.guarded != e:
			return errors.New("something holds the volume, or another epoch is open")
		}
		m.guarded = lineage.Epoch{}
		return nil
	})
}

func (w *world) AllClosed(context.Context) error {
	return w.effect("AllClosed", func() error {
		m := w.m
		if !m.guarded.IsZero() {
			return errors.New("an epoch is open at the guard")
		}
		if k := m.durable(); !k.Opened.IsZero() && !k.GaveUp(k.Opened) {
			m.c.fail("%s says that every epoch is closed, and it keeps epoch %v as open", m.name, k.Opened)
		}
		m.fenced, m.renewed = false, m.c.now
		return nil
	})
}

func (w *world) Look(ctx context.Context, d shared.Disk) (v shared.View, err error) {
	err = w.effect("Look", func() error {
		v, err = w.Disks.Look(ctx, d)
		return err
	})
	return v, err
}

func (w *world) Attach(ctx context.Context, d shared.Disk) error {
	return w.effect("Attach", func() error { return w.Disks.Attach(ctx, d) })
}

func (w *world) Detach(ctx context.Context, d shared.Disk) error {
	return w.effect("Detach", func() error {
		if w.m.device != nil {
			w.m.c.fail("the disk is detached from %s under a mount", w.m.name)
		}
		err := w.Disks.Detach(ctx, d)
		if err == nil {
			w.m.c.judgeDetach(w.m)
			w.m.c.losesPages(w.m)
		}
		return err
	})
}

func (w *world) Register(ctx context.Context, d shared.Disk, key ownership.RawKey, use shared.Use) error {
	return w.effect("Register", func() error {
		if use == shared.OwnMount && (ownership.Key{Node: w.m.name, Epoch: w.m.epoch}).Raw() != key {
			w.m.c.fail("%s registers key %#x under a mount of epoch %v", w.m.name, uint64(key), w.m.epoch)
		}
		err := w.Disks.Register(ctx, d, key, use)
		if err == nil && use == shared.Idle {
			w.m.c.losesPages(w.m)
		}
		return err
	})
}

func (w *world) Reserve(ctx context.Context, d shared.Disk, expect, key ownership.RawKey) error {
	return w.effect("Reserve", func() error {
		before, err := w.Disks.Look(ctx, d)
		if err != nil {
			return err
		}
		if w.m.c.mistake.BlindReserve {
			expect = before.Holder
		}
		if err = w.Disks.Reserve(ctx, d, expect, key); err == nil {
			w.m.c.judgeReserve(w.m, before.Holder, key)
		}
		return err
	})
}

func (w *world) Flush(ctx context.Context, d shared.Disk) error {
	return w.effect("Flush", func() error {
		if w.m.c.mistake.UnmountUnproved {
			return nil
		}
		err := w.Disks.Flush(ctx, d)
		if err == nil {
			delete(w.m.c.buffered, w.m)
		}
		return err
	})
}
