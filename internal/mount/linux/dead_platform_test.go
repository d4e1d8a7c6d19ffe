//go:build platform

package linux_test

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// mapper runs a command of the device mapper for a logical volume.
func mapper(t *testing.T, device string, args ...string) {
	t.Helper()
	parts := strings.Split(strings.TrimPrefix(device, "/dev/"), "/")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "-", "--")
	}
	c := run.Command{Operation: "dmsetup", Program: "dmsetup", Args: append(args, strings.Join(parts, "-"))}
	if _, err := (run.Exec{}).Change(c); err != nil {
		t.Fatal(err)
	}
}

// A suspended device holds whatever is read or written until it is resumed, as one does
// whose disk is gone.
func TestFiguresOfADeviceThatDoesNotAnswerHoldNobodyAndStartNothing(t *testing.T) {
	d := newDevices(t)
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		t.Run(fs, func(t *testing.T) {
			device, target := d.make(fs), t.TempDir()+"/a"
			d.mount(device, fs, target)
			mapper(t, device, "suspend", "--noflush", "--nolockfs")
			defer mapper(t, device, "resume")
			d.counter.Take()
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if s, err := d.mounter.Stats(t.Context(), target); err == nil && s.Total == 0 || err != nil && !errors.Is(err, provision.ErrUnavailable) {
						t.Errorf("figures %+v, %v", s, err)
					}
				})
				wg.Go(func() {
					if size, err := d.mounter.DeviceSize(t.Context(), device); err != nil || size != 320<<20 {
						t.Errorf("size %d, %v", size, err)
					}
				})
			}
			wg.Wait()
			if got := d.counter.Take(); len(got) != 0 {
				t.Errorf("processes were started: %v", got)
			}
		})
	}
}

// A volume that is only read is brought in order all the same, if it was not unmounted:
// what its journal holds was written. A copy has blocks of its own for that.
func TestACopyThatIsOnlyReadShowsWhatWasWrittenAndLeavesItsSourceAlone(t *testing.T) {
	d := newDevices(t)
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		t.Run(fs, func(t *testing.T) {
			device, copied := d.make(fs), d.make("")
			target, again := t.TempDir()+"/a", t.TempDir()+"/b"
			d.mount(device, fs, target)
			if err := write(target+"/file", "kept"); err != nil {
				t.Fatal(err)
			}
			copyDevice(t, device, copied)
			r := mount.Request{Device: copied, Target: again, Filesystem: fs, ReadOnly: true}
			if fs == provision.XFS {
				r.Options = []string{"nouuid"}
			}
			for range 2 {
				if err := d.mounter.Mount(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if b, err := os.ReadFile(again + "/file"); err != nil || string(b) != "kept" {
					t.Errorf("the copy holds %q, %v", b, err)
				}
				if err := write(again+"/file", "changed"); err == nil {
					t.Error("the copy can be written")
				}
				if err := d.mounter.Unmount(t.Context(), again); err != nil {
					t.Fatal(err)
				}
			}
			if err := write(target+"/file", "changed"); err != nil {
				t.Errorf("its source: %v", err)
			}
		})
	}
}
