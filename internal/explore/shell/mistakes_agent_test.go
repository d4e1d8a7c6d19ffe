package shell

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/journal/journaltest"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

func files(f func(d *journaltest.Disk) journal.Files) seam[journal.Files] {
	return func(_ *process, right journal.Files) journal.Files { return f(right.(*journaltest.Disk)) }
}

func worlds(f func(w owner.World) owner.World) seam[owner.World] {
	return func(_ *process, right owner.World) owner.World { return f(right) }
}

func calls(f func(o staging.Owner) staging.Owner) seam[staging.Owner] {
	return func(_ *process, right staging.Owner) staging.Owner { return f(right) }
}

var mistakesOfAgents = []mistake{
	{class: noFsync, name: "no-fsync", thought: "a file that was renamed is on the disk",
		files: files(func(d *journaltest.Disk) journal.Files { return unsynced{unlisted{d}} })},
	{class: noFsync, name: "file-not-synced", thought: "the name is what must be durable",
		files: files(func(d *journaltest.Disk) journal.Files { return unsynced{d} })},
	{class: noFsync, name: "directory-not-synced", thought: "the contents are what must be durable",
		files: files(func(d *journaltest.Disk) journal.Files { return unlisted{d} })},
	{class: outOfOrder, name: "not-kept", thought: "the journal can follow later", world: worlds(func(w owner.World) owner.World { return forgetful{w} })},
	{class: nilOnError, name: "store-error", seen: 7906, thought: "an error of the journal is logged, and the next entry will do",
		world: worlds(func(w owner.World) owner.World { return carefree{w} })},
	{class: answeredEarly, name: "journal-written-behind", thought: "the journal is written a moment later, in order",
		world: func(p *process, w owner.World) owner.World {
			return &behind{World: w, p: p, waiting: map[string]journal.Kept{}}
		}},
	{class: nilOnError, name: "read-error", seen: 370, thought: "a record that cannot be read is as good as none", world: worlds(func(w owner.World) owner.World { return blind{w} })},
	{class: outOfOrder, name: "guard-not-told", thought: "the guard will see the mount", world: worlds(func(w owner.World) owner.World { return silent{w} })},
	{class: nilOnError, name: "guard-open-error", seen: 49, thought: "the guard is there to help, and not in the way", world: worlds(func(w owner.World) owner.World { return defiant{w} })},
	{class: answeredEarly, name: "guard-told-later", seen: 20, thought: "the guard is told while the filesystem is mounted",
		world: func(p *process, w owner.World) owner.World { return parallel{w, p} }},
	{class: nilOnError, name: "guard-close-error", seen: 90, thought: "the epoch is over, whatever the guard says", world: worlds(func(w owner.World) owner.World { return finished{w} })},
	{class: outOfOrder, name: "active-not-written", thought: "the next decision records it", world: worlds(func(w owner.World) owner.World { return hasty{w} })},
	{class: conflictLost, name: "record-overwritten", seen: 988, thought: "the node knows best what it does", world: worlds(func(w owner.World) owner.World { return overwriting{w} })},
	{class: outOfOrder, name: "id-not-fresh", thought: "the number of an epoch is enough", world: worlds(func(w owner.World) owner.World { return numbered{w} })},
	{class: staleRead, name: "volumes-listed-once", thought: "the list of volumes was read when the agent began",
		world: worlds(func(w owner.World) owner.World { return &listed{World: w} })},
	{class: staleRead, name: "record-from-cache", seen: 323, thought: "the watch is up to date", node: func(p *process, n *owner.Node) *owner.Node {
		n.Live = p.w.driver.Live(&caller{p: p, caches: newCaches(p, nil)})
		return n
	}},
	{class: outOfOrder, name: "shut-down-unseen", thought: "a filesystem is well again when its disk is", node: func(_ *process, n *owner.Node) *owner.Node {
		n.ShutDownAt = func() ([]string, error) { return nil, nil }
		return n
	}},
	{class: outOfOrder, name: "held-unsaid", thought: "what holds a volume lets go of it by itself", world: worlds(func(w owner.World) owner.World { return reticent{w} })},
	{class: lockDropped, name: "no-locks", seen: 30, thought: "each step is correct by itself",
		locks: func(*process, staging.Locks) staging.Locks { return unlocked{} }},
	{class: lockDropped, name: "lock-expires", seen: 43, thought: "no step takes that long",
		locks: func(_ *process, l staging.Locks) staging.Locks { return expiring{l} }},
	{class: lockDropped, name: "mounted-after-the-check", seen: 12, thought: "the volume is this node's, so it can be mounted",
		calls: calls(func(o staging.Owner) staging.Owner { return mountsAfter{o} })},
	{class: answeredEarly, name: "answered-early", seen: 74, thought: "the volume is unmounted, so the pod may go",
		calls: calls(func(o staging.Owner) staging.Owner { return hurried{o} })},
	{class: answeredEarly, name: "given-up-later", seen: 3, thought: "the kubelet need not wait until the volume is given up",
		calls: func(p *process, o staging.Owner) staging.Owner { return postponed{o, p} }},
}

// unsynced and unlisted are disks on which a file, or a directory, is not synced.
type unsynced struct{ journal.Files }

func (unsynced) Sync(string) error { return nil }

type unlisted struct{ journal.Files }

func (unlisted) SyncDir() error { return nil }

type forgetful struct{ owner.World }

func (forgetful) Store(journal.Kept) error { return nil }

type carefree struct{ owner.World }

func (x carefree) Store(k journal.Kept) error {
	_ = x.World.Store(k)
	return nil
}

// behind writes the journal a moment later.
type behind struct {
	owner.World
	p       *process
	mu      sync.Mutex
	waiting map[string]journal.Kept
}

func (x *behind) Load(volume string) (journal.Kept, bool, error) {
	x.mu.Lock()
	k, found := x.waiting[volume]
	x.mu.Unlock()
	if found {
		return k, true, nil
	}
	return x.World.Load(volume)
}

func (x *behind) Store(k journal.Kept) error {
	x.mu.Lock()
	x.waiting[k.Volume] = k
	x.mu.Unlock()
	go func() {
		if waits(x.p.ctx, 20*time.Millisecond) == nil {
			_ = x.World.Store(k)
		}
	}()
	return nil
}

type blind struct{ owner.World }

func (x blind) Read(ctx context.Context, volume string) (*v1alpha1.Volume, error) {
	v, err := x.World.Read(ctx, volume)
	if err != nil {
		return v, missing(kindOf(&v1alpha1.Volume{}), volume)
	}
	return v, nil
}

type silent struct{ owner.World }

func (silent) OpenEpoch(context.Context, string, lineage.Epoch, provision.Content, bool) error {
	return nil
}

type defiant struct{ owner.World }

func (x defiant) OpenEpoch(ctx context.Context, volume string, e lineage.Epoch, c provision.Content, reserved bool) error {
	_ = x.World.OpenEpoch(ctx, volume, e, c, reserved)
	return nil
}

type parallel struct {
	owner.World
	p *process
}

func (x parallel) OpenEpoch(_ context.Context, volume string, e lineage.Epoch, c provision.Content, reserved bool) error {
	go func() { _ = x.World.OpenEpoch(x.p.ctx, volume, e, c, reserved) }()
	return nil
}

type finished struct{ owner.World }

func (x finished) CloseEpoch(ctx context.Context, volume string, e lineage.Epoch) error {
	_ = x.World.CloseEpoch(ctx, volume, e)
	return nil
}

type hasty struct{ owner.World }

func (x hasty) Replace(ctx context.Context, v *v1alpha1.Volume) error {
	if v.Status.Ownership.Primary.Phase == v1alpha1.PrimaryActive {
		return nil
	}
	return x.World.Replace(ctx, v)
}

type overwriting struct{ owner.World }

func (x overwriting) Replace(ctx context.Context, v *v1alpha1.Volume) error {
	err := x.World.Replace(ctx, v)
	if !apierrors.IsConflict(err) {
		return err
	}
	now, err := x.World.Read(ctx, v.Name)
	if err != nil {
		return err
	}
	v = v.DeepCopy()
	v.ResourceVersion = now.ResourceVersion
	return x.World.Replace(ctx, v)
}

type numbered struct{ owner.World }

func (numbered) FreshID() string { return "epoch" }

type listed struct {
	owner.World
	once sync.Once
	ids  []string
	err  error
}

func (x *listed) Volumes() ([]string, error) {
	x.once.Do(func() { x.ids, x.err = x.World.Volumes() })
	return x.ids, x.err
}

type unlocked struct{}

func (unlocked) Lock(context.Context, string) (func(), error) { return func() {}, nil }

type expiring struct{ staging.Locks }

func (x expiring) Lock(ctx context.Context, id string) (func(), error) {
	unlock, err := x.Locks.Lock(ctx, id)
	if err == nil {
		time.AfterFunc(50*time.Millisecond, unlock)
	}
	return unlock, err
}

type mountsAfter struct{ staging.Owner }

func (x mountsAfter) Take(ctx context.Context, id string, use func(context.Context) error) error {
	if err := x.Owner.Take(ctx, id, func(context.Context) error { return nil }); err != nil {
		return err
	}
	return use(ctx)
}

type hurried struct{ staging.Owner }

func (x hurried) Give(ctx context.Context, id string, off staging.Off) error {
	_ = x.Owner.Give(ctx, id, off)
	return nil
}

type postponed struct {
	staging.Owner
	p *process
}

func (x postponed) Give(_ context.Context, id string, off staging.Off) error {
	go func() { _ = x.Owner.Give(x.p.ctx, id, off) }()
	return nil
}

// reticent does not say of what the guard refuses.
type reticent struct{ owner.World }

func (w reticent) CloseEpoch(ctx context.Context, volume string, e lineage.Epoch) error {
	if err := w.World.CloseEpoch(ctx, volume, e); err != nil {
		return errors.New("the guard refuses")
	}
	return nil
}
