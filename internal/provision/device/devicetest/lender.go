package devicetest

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device"
)

// Lender makes a provisioner for tests that make pools of its disks, and no volumes.
func Lender(t testing.TB, disks device.Disks) *device.Provisioner {
	t.Helper()
	p, err := device.New(device.Config{Disks: disks, Mkfs: func(context.Context, provision.Volume, string, string) error {
		return errors.New("no filesystem is needed")
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
