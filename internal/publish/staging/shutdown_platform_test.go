//go:build platform

package staging

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// mapped runs a command of the device mapper for a volume of the group, and returns its output.
func mapped(t *testing.T, command, volume string, args ...string) string {
	t.Helper()
	device := strings.ReplaceAll(group, "-", "--") + "-" + strings.ReplaceAll(volume, "-", "--")
	out, err := (run.Exec{}).Change(run.Command{Operation: command, Program: "dmsetup", Args: append([]string{command, device}, args...)})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// fails lets the device of a volume fail all that it is asked, or work again.
func fails(t *testing.T, volume, table string) {
	t.Helper()
	mapped(t, "suspend", volume, "--noflush", "--nolockfs")
	mapped(t, "load", volume, "--table", table)
	mapped(t, "resume", volume)
}

func written(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString("data"); err != nil {
		return err
	}
	return f.Sync()
}

// failsToRecord makes files until the filesystem makes none: its journal has ended. Writes of data that fail end no
// journal.
func failsToRecord(t *testing.T, path string) {
	t.Helper()
	for n, deadline := 0, time.Now().Add(time.Minute); ; n++ {
		f, err := os.Create(fmt.Sprintf("%s/while%d", path, n))
		if err != nil {
			return
		}
		_ = f.Sync()
		_ = f.Close()
		if time.Now().After(deadline) {
			t.Fatal("the filesystem still makes files")
		}
	}
}

// The disk fails for a moment, as one does whose path was away for longer than its session waits, and is well again. The
// filesystem is not, before it is mounted anew.
func TestAFilesystemWhoseDiskFailedForAMomentHasShutItselfDown(t *testing.T) {
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		t.Run(fs, func(t *testing.T) {
			m := newMachine(t)
			m.carve(t, fs)
			m.stage(t, id)
			m.publish(t, id, "pod1")
			stage, pod := m.path("stage-"+id), m.path("pod1")
			if err := written(pod + "/before"); err != nil {
				t.Fatal(err)
			}
			sound, downs := mapped(t, "table", id), &ShutDowns{}
			if paths, err := downs.Below(m.dir); err != nil || len(paths) > 0 {
				t.Fatalf("before the disk fails: %q, %v", paths, err)
			}
			fails(t, id, "0 "+strings.Fields(sound)[1]+" error")
			failsToRecord(t, pod)
			fails(t, id, sound)
			if err := written(pod + "/after"); err == nil {
				t.Error("the filesystem takes writes again: this test shows nothing")
			}
			paths, err := downs.Below(m.dir)
			if slices.Sort(paths); err != nil || !slices.Equal(paths, []string{pod, stage}) {
				t.Errorf("found %q, %v", paths, err)
			}
			if err := m.Unpublish(t.Context(), id, pod); err != nil {
				t.Fatal(err)
			}
			m.unstage(t, id)
			m.stage(t, id)
			if paths, err := downs.Below(m.dir); err != nil || len(paths) > 0 {
				t.Errorf("after it is mounted anew: %q, %v", paths, err)
			}
			if _, err := os.Stat(stage + "/before"); err != nil {
				t.Error(err)
			}
			m.unstage(t, id)
		})
	}
}

// The kernel meets an error in what ext4 says of itself, as it does when it reads a damaged directory. mkfs lets ext4 go
// on then, with the part that it can still read.
func TestExt4StopsAtAnErrorInItsMetadata(t *testing.T) {
	m := newMachine(t)
	m.carve(t, provision.Ext4)
	m.stage(t, id)
	m.publish(t, id, "pod1")
	stage, pod := m.path("stage-"+id), m.path("pod1")
	kernel := mapped(t, "info", id, "-c", "--noheadings", "-o", "blkdevname")
	if err := os.WriteFile("/sys/fs/ext4/"+kernel+"/trigger_fs_error", []byte("a test asks for it"), 0o200); err != nil {
		t.Fatal(err)
	}
	if err := written(pod + "/after"); !errors.Is(err, unix.EROFS) {
		t.Errorf("it takes a write after an error: %v", err)
	}
	paths, err := (&ShutDowns{}).Below(m.dir)
	if slices.Sort(paths); err != nil || !slices.Equal(paths, []string{pod, stage}) {
		t.Errorf("found %q, %v", paths, err)
	}
	if err := m.Unpublish(t.Context(), id, pod); err != nil {
		t.Fatal(err)
	}
	m.unstage(t, id)
	m.stage(t, id) // the error is in the superblock: it is checked whole
	if err := written(stage + "/again"); err != nil {
		t.Error(err)
	}
	m.unstage(t, id)
}
