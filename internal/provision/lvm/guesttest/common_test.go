//go:build platform

package guesttest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

const (
	mib = int64(1 << 20)

	groupName = "vg-berth"
)

// eventually waits until ok accepts a pool as it is reported.
func eventually(t *testing.T, p provision.Provisioner, ref provision.PoolRef, ok func(provision.Pool) bool, failure string) {
	t.Helper()
	var last provision.Pool
	defer func() {
		if t.Failed() {
			t.Logf("reported last: %+v", last)
		}
	}()
	lvmtest.Eventually(t, func() bool {
		pools, err := p.Report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range pools {
			if got.PoolRef == ref {
				last = got
				return ok(got)
			}
		}
		return false
	}, failure)
}

// request asks for a volume of so many MiB.
func request(ref provision.PoolRef, id string, size int64) provision.CreateRequest {
	return provision.CreateRequest{ID: id, Pool: ref, Size: size * mib, Limits: provision.Limits{Overprovision: 1000}, Wipe: provision.WipeZero}
}

func made(t *testing.T, p provision.Provisioner, r provision.CreateRequest) provision.Volume {
	t.Helper()
	v, err := p.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// thinPool makes a thin pool of size MiB, in a group of its own.
func thinPool(t *testing.T, size int64, options ...string) provision.PoolRef {
	t.Helper()
	group := lvmtest.RealGroup(t, groupName, lvmtest.Disks(t, 1)[0])
	return lvmtest.RealThinPool(t, group.Name, "pool", size*mib, options...)
}

// dmsetup runs a command of the device mapper and returns what it printed, without the last line's
// end.
func dmsetup(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(faultydisk.Dmsetup(t, args...))
}

// overwrite writes size bytes to a device, and returns nil only if all of them are on it.
func overwrite(device string, size int64) error {
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.LimitReader(endless{}, size))
	return errors.Join(err, f.Sync(), f.Close())
}

// endless reads as bytes that are not zeros.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte{0xa5}, len(b))), nil }
