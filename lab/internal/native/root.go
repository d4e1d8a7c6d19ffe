package native

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/guest/wire"
)

// logsInNode is where a node has its log directory.
const logsInNode = wire.ToolsDir + "/log"

// states are the node's directories that outlive its power cycles, by their place in
// the node's directory. They are no part of the layered root: overlayfs cannot put
// containers' layers on a layer, and the machine's files there are not the node's.
var states = map[string]string{
	"lib/containerd":  wire.ImagesDir,
	"lib/kubelet":     "/var/lib/kubelet",
	"lib/cni":         "/var/lib/cni",
	"lib/log-pods":    "/var/log/pods",
	"lib/log-symlink": "/var/log/containers",
	"lib/lvm":         "/etc/lvm",
	logDir:            logsInNode,
}

func stateDirs() []string { return slices.Sorted(maps.Keys(states)) }

// shields are plain files in the place of kernel parameters that the kubelet sets. The
// parameters are those of the machine: the kubelet writes the files instead.
var shields = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
}

const none = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mountRoot makes the node's root directory and enters it. It runs in the node's
// own mount namespace, whose mounts do not propagate to the machine's.
func (m *Machine) mountRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("leaving the machine's mounts: %w", err)
	}
	root := filepath.Join(m.dir, rootDir)
	layers := fmt.Sprintf("lowerdir=/,upperdir=%s,workdir=%s", filepath.Join(m.dir, upperDir), filepath.Join(m.dir, workDir))
	steps := []mount{
		{"overlay", "/", "overlay", 0, layers},
		{"proc", "/proc", "proc", none, ""},
		{"sysfs", "/sys", "sysfs", none, ""},
		{cgroupRoot, cgroupRoot, "", unix.MS_BIND | unix.MS_REC, ""},
		{"dev", "/dev", "tmpfs", unix.MS_NOSUID, "mode=755"},
		{"devpts", "/dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "newinstance,gid=5,mode=620,ptmxmode=666"},
		{"shm", "/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
		{"run", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
		{"tmp", "/tmp", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	}
	for _, dir := range stateDirs() {
		steps = append(steps, mount{filepath.Join(m.dir, dir), states[dir], "", unix.MS_BIND, ""})
	}
	for _, s := range steps {
		if err := s.do(root); err != nil {
			return err
		}
	}
	if err := m.fill(root); err != nil {
		return err
	}
	return pivot(root)
}

// fill puts single files in place: devices, programs and kernel parameters.
func (m *Machine) fill(root string) error {
	if err := makeDevices(filepath.Join(root, "dev"), m.Loops); err != nil {
		return err
	}
	if err := bindFile(filepath.Join(m.dir, recordFile), filepath.Join(root, specInNode)); err != nil {
		return err
	}
	if err := showPrograms(root, m.Spec.Programs); err != nil {
		return err
	}
	for name, value := range shields {
		shield := filepath.Join(root, "run", "lab-kernel", name)
		if err := os.MkdirAll(filepath.Dir(shield), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(shield, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(shield, filepath.Join(root, "proc/sys", name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("shielding kernel parameter %s: %w", name, err)
		}
	}
	return os.MkdirAll(filepath.Join(root, "run/lock"), 0o755)
}

// pivot makes root the root directory and unmounts the machine's.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root directory: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the machine's root directory: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// The root is shared, as systemd makes it: volumes that one container mounts appear in
	// others.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing the root: %w", err)
	}
	return nil
}
