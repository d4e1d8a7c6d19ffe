//go:build platform

package faults

import (
	"errors"
	"os"
	"slices"
	"testing"

	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// metadata is how many bytes LVM keeps for itself at the beginning of a physical volume.
const metadata = mib

// started returns a running provisioner with short intervals.
func started(t *testing.T) (p *lvm.Provisioner, stop func()) {
	t.Helper()
	return lvmtest.Start(t, hasty(t))
}

// overwrite writes size bytes to a device, and returns nil only if all of them are on it.
func overwrite(device string, size int64) error {
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(slices.Repeat([]byte{0xa5}, int(size)))
	return errors.Join(err, f.Sync(), f.Close())
}
