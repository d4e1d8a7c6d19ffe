package shell

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// kernel has one volume's device on one machine, in one boot: who has it mounted and open.
type kernel struct {
	m       *machine
	v       *volume
	backing backing
	// staged is open while the volume is mounted at the staging path, in epoch.
	staged device
	epoch  lineage.Epoch
	// binds are the pods' paths, with the epoch of what is mounted there. covered are those from which the volume was
	// taken while their pod may run. containers are what runs with the volume, whatever the paths are.
	binds   map[types.UID]lineage.Epoch
	covered map[types.UID]bool
	// targets are the pods whose directory the kubelet has.
	targets    map[types.UID]bool
	containers map[types.UID]*container
	// flying counts the commands that the target has not answered.
	flying int
	// down: the filesystem has shut itself down. It is the same one, and down, until nothing has it mounted or open.
	down bool
}

// container is a pod's process that writes. It has the volume open for itself.
type container struct {
	uid    types.UID
	k      *kernel
	device device
	epoch  lineage.Epoch
	stop   context.CancelFunc
	killed bool
	// began is when it began, and wrote when a write was last acknowledged.
	began, wrote time.Time
	// waiting are writes that no sync has acknowledged.
	waiting []string
}

// paths are where the volume is mounted. It is called with the world's lock.
func (k *kernel) paths() (paths []string) {
	if k.staged != nil {
		paths = append(paths, k.v.stagePath())
	}
	for uid := range k.binds {
		paths = append(paths, k.v.podPath(uid))
	}
	slices.Sort(paths)
	return paths
}

// mounts mounts the volume at the staging path.
func (k *kernel) mounts(e lineage.Epoch) (err error) {
	w := k.m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.staged != nil {
		return nil
	}
	w.oracle.mounts(k, e)
	k.staged, err = k.backing.opens(e)
	k.epoch = e
	return err
}

// bind makes the volume appear at the path of a pod.
func (k *kernel) bind(path string) error {
	w := k.m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	_, uid := k.m.at(path)
	switch _, bound := k.binds[uid]; {
	case k.staged == nil:
		return mount.ErrNotMounted
	case k.covered[uid]:
		return fmt.Errorf("%w: something else is mounted at %s", provision.ErrConflict, path)
	case !bound:
		k.binds[uid] = k.epoch
	}
	return nil
}

// gives makes the device itself appear at the path of a pod.
func (k *kernel) gives(path string, e lineage.Epoch) error {
	w := k.m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	_, uid := k.m.at(path)
	if k.covered[uid] {
		return fmt.Errorf("%w: something else is mounted at %s", provision.ErrConflict, path)
	}
	if _, bound := k.binds[uid]; !bound {
		w.oracle.mounts(k, e)
		k.binds[uid] = e
	}
	return nil
}

// runs says whether the container of a pod runs, or has begun and would find no volume. It is called with the world's
// lock.
func (k *kernel) runs(uid types.UID) bool {
	_, bound := k.binds[uid]
	return k.containers[uid] != nil || k.m.ran[uid] && !bound
}

// starts begins the container of a pod, anew if it was killed. Without the volume at the pod's path it has a dead
// mount.
func (k *kernel) starts(uid types.UID) error {
	w := k.m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.runs(uid) {
		return nil
	}
	w.oracle.began(uid)
	e, bound := k.binds[uid]
	if !bound {
		w.tells(k.m.name, "runs a pod without %s", k.v.short)
		k.m.ran[uid] = true
		return nil
	}
	device, err := k.backing.opens(e)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(k.m.os.ctx)
	c := &container{uid: uid, k: k, device: device, epoch: e, stop: stop, began: time.Now()}
	k.containers[uid], k.m.ran[uid] = c, true
	w.tells(k.m.name, "runs a pod with %s in epoch %v", k.v.short, e)
	go c.lives(ctx, k.m.os)
	return nil
}

// lives lets the container write until it is killed.
func (c *container) lives(ctx context.Context, p *process) {
	for {
		d := p.dice("write", string(c.uid))
		if p.passes(ctx, d.between(300*time.Millisecond, 2*time.Second)) != nil {
			return
		}
		c.writes(&d, p)
	}
}

// writes lets the container write in one of the ways in which a write reaches a disk.
func (c *container) writes(d *dice, p *process) {
	k, w := c.k, c.k.m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.killed || k.down {
		return
	}
	w.oracle.sends(k)
	data := fmt.Sprintf("%s %d", p.name, d.next()%1e9)
	if d.chance(3) {
		c.device.Buffer(data)
		c.waiting = append(c.waiting, data)
		return
	}
	if len(c.waiting) > 0 { // a sync
		err := k.backing.writesBack()
		w.oracle.wrote(c.epoch, err)
		if err == nil && !k.m.sanAway {
			w.oracle.acknowledged(k.v, c.waiting)
			c.wrote = time.Now()
		}
		c.waiting = nil
	}
	command, err := c.device.Send(data)
	if err != nil {
		return
	}
	k.flying++
	late := d.upTo(20 * time.Millisecond)
	do := doing{"late write", string(c.uid)}
	nth := p.again(do)
	if x := rolled(w.seed, nth, p.name, do.what, do.about); w.strikes(strike{p.name, do, nth}, x.chance(20)) {
		late = x.between(time.Second, 20*time.Second)
	}
	time.AfterFunc(late, func() { c.lands(command) })
}

// lands lets the target execute a command. Whether the machine sleeps does not matter to it.
func (c *container) lands(command simdisk.Write) {
	k, w := c.k, c.k.m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.m.sanAway {
		time.AfterFunc(500*time.Millisecond+time.Duration(len(command.Data)), func() { c.lands(command) })
		return
	}
	k.flying--
	err := k.backing.lands(command)
	w.oracle.wrote(c.epoch, err)
	if err == nil && k.m.kernels[k.v.name] == k && !c.killed {
		w.oracle.acknowledged(k.v, []string{command.Data})
		c.wrote = time.Now()
	}
}

// kills ends containers of the volume; all if none is named. It waits for commands that are on their way.
func (k *kernel) kills(p *process, uids ...types.UID) error {
	w := k.m.w
	for {
		w.mu.Lock()
		for uid, c := range k.containers {
			if len(uids) > 0 && !slices.Contains(uids, uid) {
				continue
			}
			if !c.killed {
				w.tells(p.name, "kills the pod of %s", k.v.short)
			}
			c.killed = true
			c.stop()
		}
		if k.flying == 0 {
			for uid, c := range k.containers {
				if c.killed {
					c.device.closes()
					delete(k.containers, uid)
				}
			}
			k.ends()
			w.mu.Unlock()
			return nil
		}
		w.mu.Unlock()
		if err := p.passes(p.ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// unmounts takes everything off a path. A container that has it open keeps it.
func (m *machine) unmounts(path string) {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	k, uid := m.at(path)
	switch {
	case uid != "":
		delete(k.binds, uid)
		delete(k.covered, uid)
	case k.staged != nil:
		w.tells(m.name, "unmounts %s", k.v.short)
		k.staged.closes()
		k.staged = nil
	}
	k.ends()
}

// ends ends the filesystem if nothing has it any more. It is called with the world's lock.
func (k *kernel) ends() {
	if len(k.paths())+len(k.containers) == 0 {
		k.down = false
	}
}

// waitsForThePath is for how long a filesystem waits for its disk.
const waitsForThePath = 15 * time.Second

// shutsDown has the filesystems of a machine shut themselves down whose disks have been away for too long. Pods that have
// a device itself get errors until the path is back.
func (m *machine) shutsDown() {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if !m.sanAway || !m.up.Load() || w.plan.together {
		return
	}
	for _, v := range w.volumes {
		if k := m.kernels[v.name]; k != nil && k.staged != nil && !k.down {
			k.down = true
			w.tells(m.name, "has the filesystem of %s shut itself down", k.v.short)
			w.count("filesystems shut down")
		}
	}
}

// shutDownAt are the paths of filesystems that have shut themselves down.
func (m *machine) shutDownAt() (paths []string, _ error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for _, v := range m.w.volumes {
		if k := m.kernels[v.name]; k != nil && k.down {
			paths = append(paths, k.paths()...)
		}
	}
	return paths, nil
}

// covers puts an empty filesystem at the path of a pod from which the volume was taken.
func (m *machine) covers(path string) error {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if k, uid := m.at(path); uid != "" {
		k.covered[uid] = true
	}
	return nil
}

// held is an error if anything has the volume mounted or open.
func (k *kernel) held() error {
	k.m.w.mu.Lock()
	defer k.m.w.mu.Unlock()
	if len(k.paths())+len(k.containers) > 0 {
		return fmt.Errorf("%s is held by %d mounts and %d containers", k.v.name, len(k.paths()), len(k.containers))
	}
	return nil
}

// table is the mount table.
func (m *machine) table(v provision.Volume) ([]string, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for _, k := range m.kernels {
		if k.v.identity == v.Content.Identity {
			return k.paths(), nil
		}
	}
	return nil, nil
}

func (m *machine) holding(c provision.Content) (guard.Holding, error) {
	for _, v := range m.w.volumes {
		if v.identity == c.Identity {
			return guard.Holding{Device: v.device, Block: true}, nil
		}
	}
	return guard.Holding{}, fmt.Errorf("%w: there is no device %s", provision.ErrNotFound, c.Identity)
}
