//go:build platform

package guesttest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/kernel"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

// TestCopiesOfZvolsOnRealZFS and TestCopiesOfDatasetsOnRealZFS run the suite of replication between two
// zpools of this machine. Of the effects at which a process may end, they try as many as there are
// rounds.
func TestCopiesOfZvolsOnRealZFS(t *testing.T) { runReplication(t, "") }

func TestCopiesOfDatasetsOnRealZFS(t *testing.T) { runReplication(t, provision.Dataset) }

func runReplication(t *testing.T, tree string) {
	zfstest.Run(t, "modprobe", "zfs")
	disks := blockdevtest.Disks(t, 2)
	conformance.RunReplication(t, func(t *testing.T) [2]conformance.ReplicaNode {
		return [2]conformance.ReplicaNode{replicaNode(t, "here", disks[0], tree), replicaNode(t, "there", disks[1], tree)}
	})
}

var errEnded = errors.New("the process ends here")

// mortal is a process that may end just before or after a command that changes something.
type mortal struct {
	run.Exec
	mu       sync.Mutex
	at, seen int
	dead     bool
}

func (m *mortal) here() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen++
	m.dead = m.dead || m.seen == m.at
	return m.dead
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) Change(c run.Command) ([]byte, error) {
	if m.here() {
		return nil, errEnded
	}
	out, err := m.Exec.Change(c)
	if m.here() {
		return nil, errEnded
	}
	return out, err
}

// effects is about how many effects a life of two copies has on a node, before and after each command.
const effects = 64

func replicaNode(t *testing.T, name, disk, tree string) conformance.ReplicaNode {
	zfstest.RealZpool(t, name, disk)
	c, _, _ := zfstest.RealConfig(t)
	passed, m := time.Duration(0), &mortal{}
	c.RefreshInterval = time.Second
	c.Now = func() time.Time { return time.Now().Add(passed) }
	var p *zfs.Provisioner
	stop := func() {}
	files := replicaFiles{t}
	return conformance.ReplicaNode{
		Pool: provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + name}, Filesystem: tree,
		Every: max(1, effects/conformance.Rounds(t)), Large: 1 << 20,
		Start: func() provision.Provisioner {
			if stop(); p != nil {
				p.Wait()
			}
			if m.isDead() { // a process that ended crashes no more
				m = &mortal{}
			}
			c.Runner, c.Devices = m, zfstest.Alone{Devices: &kernel.Devices{}, Name: name}
			made, err := zfs.New(c)
			if err != nil {
				t.Fatal(err)
			}
			p, stop = made, conformance.Watching(t, made.Run)
			return p
		},
		Crash: func(at int) func() bool {
			this := &mortal{at: at}
			m = this
			return this.isDead
		},
		Write: files.write,
		Read:  files.read,
		Pass:  func(d time.Duration) { passed += d },
		Now:   func() time.Time { return c.Now() },
		Idle:  func() { idle(t, p, name) },
	}
}

// idle fails the test if anything of a copy is left in a zpool. udev may look at a zvol when it is to
// be destroyed, and then the next change has it destroyed.
func idle(t *testing.T, p *zfs.Provisioner, name string) {
	t.Helper()
	left := ""
	for range 5 {
		zfstest.Run(t, "udevadm", "settle")
		p.Wait()
		if _, err := p.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		left = zfstest.Run(t, "zfs", "list", "-H", "-r", "-t", "all", "-o", "name", name)
		if !strings.Contains(left, "berth-copies/") && !strings.Contains(left, "berth-trash/") {
			return
		}
	}
	t.Errorf("there is left:\n%s", left)
}

// replicaFiles writes and reads the content of volumes, as pods do.
type replicaFiles struct{ *testing.T }

func (f replicaFiles) write(v provision.Volume, text string) {
	f.Helper()
	if !v.Content.IsTree() {
		blockdevtest.WriteAt(f.T, v.Content.Source, text, 0)
		return
	}
	f.mounted(v, func(path string) error {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_, err = file.WriteString(text)
			err = errors.Join(err, file.Sync(), file.Close())
		}
		return err
	})
}

func (f replicaFiles) read(v provision.Volume, bytes int) (text string) {
	f.Helper()
	if !v.Content.IsTree() {
		return blockdevtest.ReadAt(f.T, v.Content.Source, bytes, 0)
	}
	f.mounted(v, func(path string) error {
		all, err := os.ReadFile(path)
		text = string(all[:min(len(all), bytes)])
		return err
	}, "noatime")
	return text
}

// mounted calls do with the path of a file in a dataset, which is mounted meanwhile.
func (f replicaFiles) mounted(v provision.Volume, do func(path string) error, options ...string) {
	f.Helper()
	mounter, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		f.Fatal(err)
	}
	dir := filepath.Join(f.TempDir(), "mounted")
	err = mounter.Mount(f.Context(), mount.Request{Content: v.Content, Target: dir, Filesystem: provision.Dataset, Options: options})
	if err == nil {
		err = errors.Join(do(filepath.Join(dir, "file")), f.unmount(mounter, dir))
	}
	if err != nil {
		f.Fatal(err)
	}
}

// unmount asks again while the dataset is busy, as the kubelet does: until a program that the node
// starts is executed, it has the files open that this process had open.
func (f replicaFiles) unmount(mounter mount.Mounter, dir string) (err error) {
	for range 50 {
		if err = mounter.Unmount(f.Context(), dir); !errors.Is(err, provision.ErrInUse) {
			return err
		}
		zfstest.Run(f.T, "udevadm", "settle")
	}
	return err
}
