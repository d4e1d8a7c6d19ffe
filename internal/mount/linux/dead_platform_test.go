//go:build platform

package linux_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

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

// A suspended device blocks every read and write until it is resumed, like a device whose
// disk is gone.
func TestStatsOfADeviceThatDoesNotAnswerBlockNoCallerAndStartNoProcess(t *testing.T) {
	d, dir := newDevices(t), t.TempDir()
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		t.Run(fs, func(t *testing.T) {
			device, target := d.make(fs), dir+"/"+fs
			d.mount(device, fs, target)
			mapper(t, device.Content.Source, "suspend", "--noflush", "--nolockfs")
			defer mapper(t, device.Content.Source, "resume")
			d.counter.Take()
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if s, err := d.mounter.Stats(t.Context(), target); err == nil && s.Total == 0 || err != nil && !errors.Is(err, provision.ErrUnavailable) {
						t.Errorf("figures %+v, %v", s, err)
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
