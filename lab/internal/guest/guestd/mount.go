package main

import (
	"fmt"
	"os"
	"syscall"
)

type mount struct {
	source, target, fstype string
	flags                  uintptr
	options                string
}

func (m mount) do() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return fmt.Errorf("mounting %s: %w", m.target, err)
	}
	if err := syscall.Mount(m.source, m.target, m.fstype, m.flags, m.options); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", m.source, m.target, err)
	}
	return nil
}

const nosuid = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC

var systemMounts = []mount{
	{"devpts", "/dev/pts", "devpts", syscall.MS_NOSUID | syscall.MS_NOEXEC, "gid=5,mode=620,ptmxmode=666"},
	{"tmpfs", "/dev/shm", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=1777"},
	{"cgroup2", "/sys/fs/cgroup", "cgroup2", nosuid, ""},
	{"securityfs", "/sys/kernel/security", "securityfs", nosuid, ""},
	{"debugfs", "/sys/kernel/debug", "debugfs", nosuid, ""},
	{"bpf", "/sys/fs/bpf", "bpf", nosuid, "mode=700"},
}

// mountSystem mounts the filesystems that a Linux system has besides its root. It makes
// the root shared, as systemd does: volumes that one container mounts must appear in
// others.
func mountSystem() error {
	for _, m := range systemMounts {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("/run/lock", 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing the root: %w", err)
	}
	return nil
}
