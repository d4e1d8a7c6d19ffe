package simcloud

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// Scheme of the handles of a simulated cloud's disks: simcloud:///NAME.
const Scheme = "simcloud"

// A disk NAME of a directory is one of simdisk there. To which machines the cloud has attached it, the files in its
// directory "at" say, each of which has the name of a machine.

// socket is what the disks of a simulated cloud are attached to.
type socket interface {
	plug(machine string) error
	unplug(machine string) error
}

// memory lets devices appear at once: its machines are played in this process.
type memory struct{ target *simdisk.Target }

func (m memory) plug(machine string) error   { return m.target.Plug(machine) }
func (m memory) unplug(machine string) error { return m.target.Crash(machine) }

// directory is a disk that other processes have, too.
type directory struct {
	memory
	dir string
}

func (d directory) plug(machine string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(d.at(machine)), 0o700), os.WriteFile(d.at(machine), nil, 0o600))
}

func (d directory) unplug(machine string) error {
	if err := os.Remove(d.at(machine)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.memory.unplug(machine)
}

func (d directory) at(machine string) string {
	return filepath.Join(d.dir, "at", filepath.Base(machine))
}

// In returns the disks of a simulated cloud in a directory, as a node of this machine sees them, with block devices.
// Nothing of it asks the cloud.
func In(dir, node string) shared.Disks {
	return simdisk.Named(Scheme, dir, node, func(name string, n *simdisk.Node) shared.Disks {
		return plugged{n, directory{dir: filepath.Join(dir, name)}.at(node)}
	})
}

// plugged is a disk on a machine that cannot attach by itself: a device appears once the cloud has attached it.
type plugged struct {
	*simdisk.Node
	at string
}

var _ shared.Disks = plugged{}

// Attach implements shared.Disks.
func (p plugged) Attach(ctx context.Context, d shared.Disk) error {
	switch _, err := os.Stat(p.at); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return provision.Unavailable(err)
	}
	return p.Node.Attach(ctx, d)
}
