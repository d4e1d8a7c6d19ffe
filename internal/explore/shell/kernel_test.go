package shell

import (
	"context"
	"errors"
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
	m    *machine
	v    *volume
	node *simdisk.Node
	// staged is open while the volume is mounted at the staging path, in epoch.
	staged *simdisk.Device
	epoch  lineage.Epoch
	// binds are the pods' paths, and containers what runs with the volume, whatever the paths are.
	binds      map[types.UID]bool
	containers map[types.UID]*container
	// flying counts the commands that the target has not answered.
	flying int
}

// container is a pod's process that writes. It has the volume open for itself.
type container struct {
	uid    types.UID
	k      *kernel
	device *simdisk.Device
	epoch  lineage.Epoch
	stop   context.CancelFunc
	killed bool
	// wrote is when a write was last acknowledged.
	wrote time.Time
	// waiting are writes that no sync has acknowledged.
	waiting []string
}

func (k *kernel) stagePath() string { return "/stage/" + k.v.name }

// paths are where the volume is mounted. It is called with the world's lock.
func (k *kernel) paths() (paths []string) {
	if k.staged != nil {
		paths = append(paths, k.stagePath())
	}
	for uid := range k.binds {
		paths = append(paths, "/pods/"+string(uid))
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
	k.staged, err = k.node.Open(e)
	k.epoch = e
	return err
}

// runs begins a container that has the volume.
func (k *kernel) runs(uid types.UID) error {
	w := k.m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.staged == nil {
		return errors.New("nothing is mounted at the staging path")
	}
	if k.containers[uid] != nil {
		return nil
	}
	device, err := k.node.Open(k.epoch)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(k.m.os.ctx)
	c := &container{uid: uid, k: k, device: device, epoch: k.epoch, stop: stop}
	k.binds[uid], k.containers[uid] = true, c
	w.tells(k.m.name, "runs a pod with %s in epoch %v", k.v.short, k.epoch)
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
	if c.killed {
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
		err := k.node.WriteBack()
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
	err := k.node.Land(command)
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
					c.device.Close()
					delete(k.containers, uid)
				}
			}
			w.mu.Unlock()
			return nil
		}
		w.mu.Unlock()
		if err := p.passes(p.ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// unmounts takes the volume off a path. A container that has it open keeps it.
func (k *kernel) unmounts(path string) {
	w := k.m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if path == k.stagePath() {
		if k.staged != nil {
			w.tells(k.m.name, "unmounts %s", k.v.short)
			k.staged.Close()
			k.staged = nil
		}
		return
	}
	delete(k.binds, types.UID(path[len("/pods/"):]))
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

// mounter takes mounts off for the agent.
type mounter struct {
	mount.Mounter
	p *process
}

// Unmount implements mount.Mounter.
func (x mounter) Unmount(ctx context.Context, path string) error {
	return x.p.effect(ctx, local, "Unmount", path, func() error {
		for _, k := range x.p.m.all() {
			k.m.w.mu.Lock()
			found := slices.Contains(k.paths(), path)
			k.m.w.mu.Unlock()
			if found {
				k.unmounts(path)
			}
		}
		return nil
	})
}

// table is the mount table.
func (m *machine) table(v provision.Volume) ([]string, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for _, k := range m.kernels {
		if k.v.disk.Identity == v.Content.Identity {
			return k.paths(), nil
		}
	}
	return nil, nil
}

func (m *machine) holding(c provision.Content) (guard.Holding, error) {
	for _, v := range m.w.volumes {
		if v.disk.Identity == c.Identity {
			return guard.Holding{Device: v.device, Block: true}, nil
		}
	}
	return guard.Holding{}, fmt.Errorf("%w: there is no device %s", provision.ErrNotFound, c.Identity)
}
