package zfs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

func TestConformanceOfReplicationOnPlayedZFS(t *testing.T) {
	for what, tree := range map[string]string{"zvols": "", "datasets": provision.Dataset} {
		t.Run(what, func(t *testing.T) {
			conformance.RunReplication(t, func(t *testing.T) [2]conformance.ReplicaNode {
				return [2]conformance.ReplicaNode{replicaNode(t, tree), replicaNode(t, tree)}
			})
		})
	}
}

// death ends a process before or after one of its commands that change something. If the command makes
// something, the process can also end halfway, as in a loss of power.
type death struct {
	halve    func(run.Command) // leaves what ZFS makes first
	mu       sync.Mutex
	at, seen int
	dead     bool
}

func (d *death) around(c run.Command, do func() ([]byte, error)) ([]byte, error) {
	switch c.Args[0] {
	case "list", "version", "get", "sync", "send":
		if d.is() {
			return nil, errCrash
		}
		return do()
	}
	if d.here() {
		return nil, errCrash
	}
	out, err := do()
	if (c.Operation == "zfs create" || c.Operation == "zfs clone") && d.here() {
		d.halve(c)
		return nil, errCrash
	}
	if d.here() {
		return nil, errCrash
	}
	return out, err
}

func (d *death) is() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

func (d *death) here() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen++
	d.dead = d.dead || d.seen == d.at
	return d.dead
}

// replicaNode is a machine of its own, whose volumes can be copies.
func replicaNode(t *testing.T, tree string) conformance.ReplicaNode {
	h := newHost()
	// What an ended process still asks goes by the death of the next.
	var now atomic.Pointer[time.Time]
	var current atomic.Pointer[death]
	pass := func(at time.Time) { now.Store(&at) }
	pass(time.Unix(1e9, 0))
	current.Store(&death{halve: h.Halve})
	h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) { return current.Load().around(c, do) }
	c := config(h)
	c.RefreshInterval = 10 * time.Millisecond
	c.Now = func() time.Time { return *now.Load() }
	var p *zfs.Provisioner
	stop := func() {}
	return conformance.ReplicaNode{
		Pool: tank, Filesystem: tree,
		Start: func() provision.Provisioner {
			stop()
			if p != nil {
				p.Wait()
			}
			if current.Load().is() { // a process that ended crashes no more
				current.Store(&death{halve: h.Halve})
			}
			p, stop = start(t, c)
			return p
		},
		Crash: func(at int) func() bool {
			this := &death{halve: h.Halve, at: at}
			current.Store(this)
			return this.is
		},
		Write: func(v provision.Volume, text string) {
			h.On(v.Content.Source, func(d *zfstest.Dataset) {
				d.Content, d.Written = text+d.Content[min(len(text), len(d.Content)):], true
			})
		},
		Read: func(v provision.Volume, bytes int) (text string) {
			h.On(v.Content.Source, func(d *zfstest.Dataset) { text = d.Content })
			return (text + strings.Repeat("\x00", bytes))[:bytes]
		},
		Pass: func(d time.Duration) { pass(now.Load().Add(d)) },
		Now:  func() time.Time { return *now.Load() },
		Idle: func() {
			p.Wait()
			if _, err := p.Report(t.Context()); err != nil {
				t.Error(err)
			}
			p.Wait()
			if pool := reported(t, p); pool.Free != pool.Total {
				t.Errorf("of %d bytes %d are free, and %d are foreign", pool.Total, pool.Free, pool.Foreign)
			}
			if left := strings.Join(datasets(h), " "); strings.Contains(left, "berth-copies/") || strings.Contains(left, "berth-trash/") {
				t.Errorf("there is left %s", left)
			}
		},
	}
}

func TestACopyWithoutItsHeadIsNotANodeWithoutACopy(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 1)
	epoch := lineage.Epoch{Number: 1, ID: "e1"}
	mark := provision.Mark{Promise: ownership.Promise{Epoch: epoch, Lineage: lineage.Lineage{{Epoch: epoch}}}, Opened: epoch}
	if err := p.Replicator().Mark(t.Context(), "pvc-1", mark); err != nil {
		t.Fatal(err)
	}
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		all := zpools["tank"].Datasets
		all[parent+"/elsewhere"] = all[volumes+"pvc-1"]
		delete(all, volumes+"pvc-1")
	})
	p, _ = start(t, config(h))
	if s, err := p.Replicator().State(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("state: %+v, %v, want ErrUnavailable", s, err)
	}
	if err := p.Replicator().Mark(t.Context(), "pvc-1", mark); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("marking: %v, want ErrUnavailable", err)
	}
	if _, err := p.Replicator().State(t.Context(), "pvc-2"); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("a volume that never was: %v, want ErrNotFound", err)
	}
}

// A copy grows while it follows another node's head. Then it becomes writable again, at a point that is its old head's newest
// snapshot and was taken when the volume was small.
func TestAHeadThatIsMadeOfASmallerPointIsAsLargeAsItsVolume(t *testing.T) {
	ctx, branch := t.Context(), func(n uint64, id string, from lineage.Point) lineage.Branch {
		return lineage.Branch{Epoch: lineage.Epoch{Number: n, ID: id}, From: from}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	one := branch(1, "one", lineage.Point{})
	first := lineage.Point{Epoch: one.Epoch, Seq: 1}
	two, three, four := branch(2, "two", first), branch(3, "three", first), branch(4, "four", first)
	second := lineage.Point{Epoch: two.Epoch, Seq: 2}
	promise := func(l ...lineage.Branch) ownership.Promise {
		return ownership.Promise{Epoch: l[len(l)-1].Epoch, Lineage: l}
	}
	opens := func(r provision.Replicator, p ownership.Promise) provision.Volume {
		t.Helper()
		must(r.Mark(ctx, "pvc-1", provision.Mark{Promise: p, Opened: p.Epoch}))
		v, err := r.Writable(ctx, "pvc-1")
		must(err)
		return v
	}
	moves := func(from, to provision.Replicator, base, target lineage.Point) {
		t.Helper()
		s, err := conformance.Send(ctx, from, provision.SendRequest{Volume: "pvc-1", Base: base, Target: target})
		must(err)
		must(conformance.Receive(ctx, to, s))
	}
	h := newHost()
	a, _ := start(t, config(h))
	b, _ := start(t, config(newHost()))
	create(t, a, "pvc-1", 1)
	create(t, b, "pvc-1", 1)
	here, there := a.Replicator(), b.Replicator()
	opens(here, promise(one))
	must(here.Snapshot(ctx, provision.PointRequest{Volume: "pvc-1", Point: first}))
	moves(here, there, lineage.Point{}, first)
	must(here.Mark(ctx, "pvc-1", provision.Mark{Closed: one.Epoch}))
	const large = 8 << 20
	for _, p := range []provision.Provisioner{a, b} {
		_, err := p.Expand(ctx, provision.ExpandRequest{ID: "pvc-1", Size: large})
		must(err)
	}
	opens(there, promise(one, two))
	must(there.Snapshot(ctx, provision.PointRequest{Volume: "pvc-1", Point: second}))
	moves(there, here, first, second)
	must(here.Preserve(ctx, "pvc-1", first))
	must(here.RollBack(ctx, "pvc-1", first))
	v := opens(here, promise(one, two, three, four))
	h.On(v.Content.Source, func(d *zfstest.Dataset) {
		if d.Volsize != large || v.Size != large {
			t.Errorf("the device has %d bytes, and the volume %d; want %d", d.Volsize, v.Size, large)
		}
	})
}

// TestAHeadIsDirtyIfItDiffersOrIsOpen: to look at a head makes ZFS write to it.
func TestAHeadIsDirtyIfItDiffersOrIsOpen(t *testing.T) {
	h, one := newHost(), lineage.Epoch{Number: 1, ID: "one"}
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 1)
	r := p.Replicator()
	err := r.Mark(t.Context(), "pvc-1", provision.Mark{Promise: ownership.Promise{Epoch: one, Lineage: lineage.Lineage{{Epoch: one}}}, Opened: one})
	v, open := r.Writable(t.Context(), "pvc-1")
	if err := errors.Join(err, open, r.Snapshot(t.Context(), provision.PointRequest{Volume: "pvc-1", Point: lineage.Point{Epoch: one, Seq: 1}})); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name   string
		change func(d *zfstest.Dataset)
		dirty  bool
	}{
		{"nothing was written", func(*zfstest.Dataset) {}, false},
		{"nothing was written, and it was looked at before", func(*zfstest.Dataset) {}, false},
		{"udev looks at it", func(d *zfstest.Dataset) { d.Probed = true }, false},
		{"a process has it open", func(d *zfstest.Dataset) { d.Open = true }, true},
		{"a pod has it mounted", func(d *zfstest.Dataset) { d.Open, d.Mounted = false, true }, true},
		{"the pod has left, and has written nothing", func(d *zfstest.Dataset) { d.Mounted = false }, false},
		{"a pod has written", func(d *zfstest.Dataset) { d.Content += "more" }, true},
	} {
		h.On(v.Content.Source, step.change)
		s, err := r.State(t.Context(), "pvc-1")
		if err != nil || s.Dirty != step.dirty {
			t.Errorf("%s: dirty is %v, %v", step.name, s.Dirty, err)
		}
	}
}

// stuck is a ZFS whose program hangs when it is to send, and cannot be ended: it keeps its end of the pipe.
type stuck struct {
	run.Runner
	t     *testing.T
	hangs func()
}

func (s stuck) Query(ctx context.Context, c run.Command) ([]byte, error) {
	if c.Args[0] != "send" {
		return s.Runner.Query(ctx, c)
	}
	out, err := c.Out.SyscallConn()
	if err != nil {
		return nil, err
	}
	_ = out.Control(func(fd uintptr) {
		kept, err := unix.Dup(int(fd))
		if err != nil {
			s.t.Error(err)
		}
		s.t.Cleanup(func() { _ = unix.Close(kept) })
	})
	s.hangs()
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestAZFSThatHangsHoldsNoCopyUp(t *testing.T) {
	h, one := newHost(), lineage.Epoch{Number: 1, ID: "one"}
	ctx, cancel := context.WithCancel(t.Context())
	c := config(h)
	c.Runner = stuck{c.Runner, t, cancel}
	p, _ := start(t, c)
	create(t, p, "pvc-1", 1)
	r := p.Replicator()
	err := r.Mark(ctx, "pvc-1", provision.Mark{Promise: ownership.Promise{Epoch: one, Lineage: lineage.Lineage{{Epoch: one}}}, Opened: one})
	_, open := r.Writable(ctx, "pvc-1")
	if err := errors.Join(err, open, r.Snapshot(ctx, provision.PointRequest{Volume: "pvc-1", Point: lineage.Point{Epoch: one, Seq: 1}})); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := r.State(ctx, "pvc-1")
		answered <- err
	}()
	select {
	case err := <-answered:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the state is told with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the state of the copy is asked for without end")
	}
}

// A stream is cut while the whole zpool is read, and the reading has already printed what was there before.
func TestAHalfStreamIsKnownThoughAReadingBeganBeforeItWasCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := lineage.Epoch{Number: 1, ID: "one"}
		first := lineage.Point{Epoch: one, Seq: 1}
		a, _ := start(t, config(newHost()))
		h := newHost()
		b, _ := start(t, config(h))
		create(t, a, "pvc-1", 1)
		create(t, b, "pvc-1", 1)
		r := a.Replicator()
		err := r.Mark(t.Context(), "pvc-1", provision.Mark{Promise: ownership.Promise{Epoch: one, Lineage: lineage.Lineage{{Epoch: one}}}, Opened: one})
		_, open := r.Writable(t.Context(), "pvc-1")
		if err := errors.Join(err, open, r.Snapshot(t.Context(), provision.PointRequest{Volume: "pvc-1", Point: first})); err != nil {
			t.Fatal(err)
		}
		s, err := conformance.Send(t.Context(), r, provision.SendRequest{Volume: "pvc-1", Target: first})
		if err != nil {
			t.Fatal(err)
		}
		s.Bytes = s.Bytes[:len(s.Bytes)-1]
		receiving, cut, printed, ends := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			switch {
			case c.Args[0] == "receive":
				close(receiving)
				<-cut
			case c.Args[0] == "list" && c.Args[len(c.Args)-1] == "tank":
				defer func() { close(printed); <-ends }()
			}
			return do()
		}
		received := make(chan error, 1)
		go func() { received <- conformance.Receive(t.Context(), b.Replicator(), s) }()
		<-receiving
		<-time.After(time.Hour) // the zpool is read again
		<-printed
		close(cut)
		synctest.Wait()
		h.Around = nil
		close(ends)
		if err := <-received; err == nil {
			t.Error("a stream without its end was received")
		}
		synctest.Wait()
		state, err := b.Replicator().State(t.Context(), "pvc-1")
		if err != nil || state.Receiving.Token == "" {
			t.Errorf("the half stream is %+v, %v", state.Receiving, err)
		}
	})
}
