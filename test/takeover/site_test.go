//go:build platform

package takeover

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

const (
	lun      = "lun"
	identity = "berth-takeover-1"
	size     = 256 << 20
)

// groups is the name of the control group of all pods of this test.
const groups = "berth-takeover"

// prepare makes the network and the disk, and removes what an earlier run has left. Namespaces end with their
// processes; loop devices and control groups do not.
func prepare() error {
	if os.Getpid() != 1 {
		return errors.New("this test makes networks and kills processes: run it in namespaces of its own, by make bench-failover-native")
	}
	lock, err := os.OpenFile(*site+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil { // until this process ends
		return fmt.Errorf("another run has %s: %w", *site, err)
	}
	if err := errors.Join(sweep(), os.RemoveAll(*site), os.RemoveAll(disks()), os.MkdirAll(disk(), 0o700)); err != nil {
		return err
	}
	file := filepath.Join(disk(), "disk")
	if err := errors.Join(os.WriteFile(filepath.Join(disk(), "identity"), []byte(identity), 0o600), os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
		return err
	}
	for _, command := range []string{
		"ip link set lo up", "ip link add " + bridge + " type bridge", "ip addr add " + serverAt + "/24 dev " + bridge, "ip link set " + bridge + " up",
	} {
		if err := do(strings.Fields(command)...); err != nil {
			return err
		}
	}
	return nil
}

// disks is in memory: the simulated target keeps its state by a sync for each question, which no target takes.
func disks() string { return "/dev/shm/berth-takeover" }
func disk() string  { return filepath.Join(disks(), lun) }

// sweep detaches the loop devices of the disk, and removes the control groups.
func sweep() error {
	backed, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return err
	}
	for _, path := range backed {
		of, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(of), disk()+"/") {
			if err := do("losetup", "--detach", filepath.Join("/dev", filepath.Base(filepath.Dir(filepath.Dir(path))))); err != nil {
				return err
			}
		}
	}
	root, err := pods()
	if err != nil {
		return err
	}
	for depth := 3; depth >= 0; depth-- { // a node's, a pod's, a container's
		found, err := filepath.Glob(root + strings.Repeat("/*", depth))
		if err != nil {
			return err
		}
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				if err := os.Remove(path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pods is the control group of all pods of this test.
func pods() (string, error) {
	found, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup2"))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("no control groups of version 2 are mounted: %w", err)
	}
	return filepath.Join(found[0].Mountpoint, groups), nil
}

// do runs a command that says why it fails.
func do(command ...string) error {
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput() //nolint:noctx // they take no time
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, out)
	}
	return nil
}
