package released

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

const (
	identity = "wwn:lun"
	unit     = 64 << 10
	size     = 8 * unit
	lunName  = "array-1"
)

var errDead = errors.New("the agent has ended")

// The epochs of the volume that had the LUN, and of its wipe.
var (
	tenancy = v1alpha1.Epoch{Number: 7, ID: "tenant"}
	wiping  = v1alpha1.Epoch{Number: 8, ID: "wipe"}
)

// world is a disk full of a tenant's data, its LUN at the API server, and nodes. Each effect of a node is counted.
type world struct {
	t      *testing.T
	target *simdisk.Target
	data   []byte
	// thin: the disk supports discards.
	thin bool
	// zeros is how many ranges nodes have zeroed.
	zeros int
	lun   v1alpha1.LUN
	// before is called before each effect of a node, with its number, from one. An error of breaks is the effect's,
	// which does not happen then.
	before func(node string, effect int)
	breaks func(effect int, name string) error
	// progress is how many records said that a part is wiped, and looks how often the disk was looked at.
	progress, looks int
	// flushed: nothing was zeroed since the last flush.
	flushed bool
	// seen changes what a look at the disk finds.
	seen func(v *shared.View)
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, target: simdisk.New(simdisk.Config{Identity: identity, Shares: 4, Persistent: true}), data: bytes.Repeat([]byte("secret!?"), size/8)}
	w.lun.Name, w.lun.UID, w.lun.ResourceVersion = lunName, "1", "1"
	w.lun.Spec = v1alpha1.LUNSpec{Disk: v1alpha1.SharedDisk{Handle: "sim:///lun", Identity: identity}, Capacity: *resource.NewQuantity(size, resource.BinarySI), Persistent: true}
	w.lun.Status = v1alpha1.LUNStatus{State: v1alpha1.LUNReleased, Volume: &v1alpha1.LUNVolume{Name: "vol", UID: "1"}, Wipe: &v1alpha1.LUNWipe{
		Mode: v1alpha1.Block, Epoch: tenancy, Keys: []v1alpha1.ReservationKey{{Node: "b", Epoch: tenancy}},
	}}
	w.order("a", wiping)
	return w
}

// order has a node wipe the disk, as a controller does.
func (w *world) order(node string, e v1alpha1.Epoch) {
	old := w.lun.Status.Wipe
	w.lun.Status.State = v1alpha1.LUNWiping
	w.lun.Status.Wipe = &v1alpha1.LUNWipe{Mode: old.Mode, Proved: old.Proved, Node: node, Epoch: e, Keys: append(old.Keys, v1alpha1.ReservationKey{Node: node, Epoch: e})}
	w.touch()
}

func (w *world) touch() { w.lun.ResourceVersion += "+" }

func (w *world) blank() bool { return len(bytes.Trim(w.data, "\x00")) == 0 }

func (w *world) disk() shared.Disk { return diskOf(&w.lun) }

// process is one life of a node's agent.
type process struct {
	*world
	name    string
	node    *simdisk.Node
	effects int
	// dies is the effect at which it dies, zero is none; after says that the effect has happened.
	dies  int
	after bool
	dead  bool
	// reboots: its machine dies with it.
	reboots bool
	open    []*simdisk.Device
}

func (w *world) process(node string) *process {
	return &process{world: w, name: node, node: w.target.Node(node)}
}

func (p *process) wiper() *Wiper {
	return New(Config{
		Node: p.name, Objects: p, Disks: disks{p}, Machine: p, Clock: testclock.NewFakePassiveClock(time.Unix(1000, 0)), Step: int64(len(p.data)) / 8, Marks: 2 * unit, Log: logr.Discard(),
	})
}

// effect makes one.
func (p *process) effect(name string, f func() error) error {
	if p.dead {
		return errDead
	}
	p.effects++
	if p.before != nil {
		p.before(p.name, p.effects)
	}
	if p.effects == p.dies && !p.after {
		p.dead = true
		return errDead
	}
	if p.breaks != nil {
		if err := p.breaks(p.effects, name); err != nil {
			return err
		}
	}
	err := f()
	if p.effects == p.dies {
		p.dead = true
		return errDead
	}
	return err
}

// ends closes what a process that has died had open.
func (p *process) ends() {
	for _, d := range p.open {
		d.Close()
	}
}

// lives lets agents of a node wipe until there is nothing more to do, or it takes too many calls.
func (p *process) lives() error {
	var last error
	for range 40 {
		if p.lun.Status.Wipe.Node != p.name {
			return nil
		}
		if _, last = p.wiper().Wipe(p.t.Context(), lunName); p.dead {
			p.ends()
			if p.reboots {
				last = errors.Join(last, p.target.Crash(p.name))
			}
			p.dead, p.dies = false, 0
		}
	}
	return fmt.Errorf("the wipe does not come to an end: %+v, %w", p.lun.Status.Wipe, last)
}

// Read implements Objects.
func (p *process) Read(context.Context, string) (l *v1alpha1.LUN, err error) {
	err = p.effect("Read", func() error { l = p.lun.DeepCopy(); return nil })
	return l, err
}

// Replace implements Objects.
func (p *process) Replace(_ context.Context, l *v1alpha1.LUN) error {
	return p.effect("Replace", func() error {
		if l.ResourceVersion != p.lun.ResourceVersion {
			return apierrors.NewConflict(schema.GroupResource{}, l.Name, nil)
		}
		p.judge(l.Status.Wipe)
		if l.Status.Wipe.Done > p.lun.Status.Wipe.Done && l.Status.Wipe.Outcome == "" {
			p.progress++
		}
		p.lun = *l.DeepCopy()
		p.touch()
		return nil
	})
}

// judge compares what is recorded with the disk.
func (w *world) judge(now *v1alpha1.LUNWipe) {
	w.t.Helper()
	if n := min(now.Done, size); len(bytes.Trim(w.data[:n], "\x00")) > 0 {
		w.t.Errorf("%d bytes are called wiped, and are not", n)
	}
	switch now.Outcome {
	case v1alpha1.LUNWiped:
		if !w.blank() || !w.flushed {
			w.t.Error("the disk is called wiped, and is not, or may lose that with its power")
		}
	case v1alpha1.LUNCleared:
		if v, err := w.target.Node(now.Node).Look(w.t.Context(), w.disk()); now.Node != "" && err == nil && v.Link == ownership.Attached && !v.Holder.IsLeftByWipe() {
			w.t.Errorf("the disk is called cleared, and its holder is %#x", uint64(v.Holder))
		}
	}
}

// disks are those of a process.
type disks struct{ p *process }

func (d disks) Capabilities() shared.Capabilities { return d.p.node.Capabilities() }

func (d disks) Look(ctx context.Context, at shared.Disk) (v shared.View, err error) {
	err = d.p.effect("Look", func() error { v, err = d.p.node.Look(ctx, at); return err })
	if d.p.looks++; d.p.seen != nil {
		d.p.seen(&v)
	}
	return v, err
}

func (d disks) Attach(ctx context.Context, at shared.Disk) error {
	return d.p.effect("Attach", func() error { return d.p.node.Attach(ctx, at) })
}

func (d disks) Detach(ctx context.Context, at shared.Disk) error {
	return d.p.effect("Detach", func() error { return d.p.node.Detach(ctx, at) })
}

func (d disks) Register(ctx context.Context, at shared.Disk, k ownership.RawKey, use shared.Use) error {
	return d.p.effect("Register", func() error { return d.p.node.Register(ctx, at, k, use) })
}

func (d disks) Reserve(ctx context.Context, at shared.Disk, expect, k ownership.RawKey) error {
	return d.p.effect("Reserve", func() error { return d.p.node.Reserve(ctx, at, expect, k) })
}

func (d disks) Flush(ctx context.Context, at shared.Disk) error {
	return d.p.effect("Flush", func() error {
		d.p.flushed = true
		return d.p.node.Flush(ctx, at)
	})
}

// Hold implements Machine.
func (p *process) Hold(c provision.Content) (d Device, err error) {
	err = p.effect("Hold", func() error {
		if c == (provision.Content{}) {
			p.t.Error("a device without a name is opened")
		}
		if c.Identity != identity {
			return fmt.Errorf("%w: it is %s", provision.ErrUnavailable, c.Identity)
		}
		open, err := p.node.Open(lineage.Epoch{})
		p.open = append(p.open, open)
		d = &device{p, open}
		return err
	})
	return d, err
}

// Size implements Machine.
func (p *process) Size(c provision.Content) (n int64, err error) {
	if c == (provision.Content{}) {
		p.t.Error("a device without a name is looked at")
	}
	err = p.effect("Size", func() error { n = int64(len(p.data)); return nil })
	return n, err
}

// device is the open disk, whose target judges each write.
type device struct {
	p    *process
	open *simdisk.Device
}

func (d *device) ReadAt(b []byte, at int64) (n int, err error) {
	err = d.p.effect("ReadAt", func() error { n = copy(b, d.p.data[at:]); return nil })
	return n, err
}

func (d *device) zero(offset, length int64) error {
	return d.p.effect("zero", func() error {
		if now := d.p.lun.Status.Wipe; now != nil && now.Node == d.p.name && now.Mode == v1alpha1.Filesystem && !now.Proved {
			d.p.t.Error("the sign of the volume is wiped before it is recorded")
		}
		if err := d.open.Write("zeros"); err != nil {
			return err
		}
		d.p.flushed = false
		clear(d.p.data[offset : offset+length])
		d.p.zeros++
		return nil
	})
}

func (d *device) Discard(offset, length int64) error {
	if !d.p.thin {
		return errors.ErrUnsupported
	}
	return d.zero(offset, length)
}

func (d *device) Overwrite(offset, length int64) error { return d.zero(offset, length) }

func (d *device) Close() error {
	d.open.Close()
	return d.p.effect("Close", func() error { return nil })
}

// tenant is a writer on a node that has had the disk, and never let go of it.
type tenant struct {
	w    *world
	node *simdisk.Node
}

// settles attaches the disk to a node, which takes it in an epoch from a holder.
func (w *world) settles(node string, e v1alpha1.Epoch, from ownership.RawKey) *tenant {
	w.t.Helper()
	n, key := w.target.Node(node), rawKey(v1alpha1.ReservationKey{Node: node, Epoch: e})
	if err := errors.Join(n.Attach(w.t.Context(), w.disk()), n.Register(w.t.Context(), w.disk(), key, shared.Idle), n.Reserve(w.t.Context(), w.disk(), from, key)); err != nil {
		w.t.Fatal(err)
	}
	return &tenant{w, n}
}

// leftByWipe is the key under which a wiped disk is reserved, as a node finds it that attaches the disk.
func (w *world) leftByWipe(node string) ownership.RawKey {
	w.t.Helper()
	n := w.target.Node(node)
	check(w.t, n.Attach(w.t.Context(), w.disk()))
	v, err := n.Look(w.t.Context(), w.disk())
	if err != nil || !v.Holder.IsLeftByWipe() {
		w.t.Fatalf("a wiped disk is reserved under %#x, %v", uint64(v.Holder), err)
	}
	return v.Holder
}

// writes writes at a place, if the disk lets it.
func (n *tenant) writes(at int, text string) error {
	d, err := n.node.Open(lineage.Epoch{})
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Write(text); err != nil {
		return err
	}
	copy(n.w.data[at:], text)
	return nil
}

func leaving(l *v1alpha1.LUN) { l.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

// ownershipless is the epoch of a process that has a disk open and knows of no epoch.
var ownershipless lineage.Epoch

// noShares is a target that lets no node attach its disk.
func noShares(t *testing.T) *simdisk.Target {
	t.Helper()
	return simdisk.New(simdisk.Config{Identity: identity, Persistent: true})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
