//go:build platform

package guesttest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

const (
	ownDevice  = "vg--berth-pool"
	dataDevice = ownDevice + "_tdata"
)

// larger returns the table of a device, extended by this many sectors.
func larger(t *testing.T, table string, by int64) string {
	t.Helper()
	words := strings.Fields(table)
	length, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || len(words) != 5 || words[2] != "linear" {
		t.Fatalf("the data is mapped by %q: %v", table, err)
	}
	words[1] = strconv.FormatInt(length+by, 10)
	return strings.Join(words, " ")
}

// A command that dies while it extends a thin pool leaves some of its devices suspended,
// from the upper to the lower ones, and a table loaded that LVM has not recorded.
func TestAThinPoolThatWasLeftSuspendedIsMendedOnRealLVM(t *testing.T) {
	all, pool := t, thinPool(t, 64)
	c, _, _ := lvmtest.RealConfig(t)
	p, stop := lvmtest.Start(t, c)
	v := made(t, p, request(pool, "pvc-1", 32))
	for name, suspended := range map[string][]string{
		"the top device of the pool":                   {ownDevice},
		"the top and the middle device of the pool":    {ownDevice, ownDevice + "-tpool"},
		"the middle device of the pool":                {ownDevice + "-tpool"}, // by an administrator
		"the volume and the upper devices of the pool": {"vg--berth-pvc--1", ownDevice, ownDevice + "-tpool"},
		"all devices of the pool":                      {ownDevice, ownDevice + "-tpool", dataDevice, ownDevice + "_tmeta"},
	} {
		t.Run(name, func(t *testing.T) {
			stop()
			before := dmsetup(t, "table", dataDevice)
			dmsetup(t, "load", dataDevice, "--table", larger(t, before, 8192))
			suspend(t, suspended...)
			written := make(chan error, 1) // it waits in the kernel
			go func() { written <- overwrite(v.Content.Source, 16*mib) }()
			p, stop = lvmtest.Start(all, c)
			eventually(t, p, pool, func(got provision.Pool) bool { return got.Problem == "" && mended(t) }, "the pool is not mended")
			ends(t, written)
			if after := dmsetup(t, "table", dataDevice); after != before {
				t.Errorf("the data is mapped by %q, and was by %q", after, before)
			}
			if state := dmsetup(t, "info", "--columns", "--noheadings", "--options", "tables_loaded", dataDevice); state != "Live" {
				t.Errorf("the data has its tables %s", state)
			}
		})
	}
	t.Run("a running provisioner mends the pool", func(t *testing.T) {
		suspend(t, ownDevice, ownDevice+"-tpool")
		written := make(chan error, 1)
		go func() { written <- overwrite(v.Content.Source, 32*mib) }()
		lvmtest.Eventually(t, func() bool {
			if _, err := p.Report(t.Context()); err != nil {
				t.Fatal(err)
			}
			return mended(t)
		}, "a pool that others left suspended is not mended")
		ends(t, written)
		lvmtest.LVM(t, "lvextend", "--yes", "--size", "96M", pool.Name)
		eventually(t, p, pool, func(p provision.Pool) bool { return p.Total == 96*mib && p.Problem == "" }, "the pool was not extended")
	})
	if err := p.Delete(t.Context(), v.ID); err != nil {
		t.Error(err)
	}
}

func suspend(t *testing.T, devices ...string) {
	t.Helper()
	for _, device := range devices {
		dmsetup(t, "suspend", "--noflush", "--nolockfs", device)
	}
}

// ends fails unless a write ends without an error.
func ends(t *testing.T, written <-chan error) {
	t.Helper()
	select {
	case err := <-written:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("who writes waits for ever")
	}
}

// mended says whether no device is suspended.
func mended(t *testing.T) bool {
	t.Helper()
	devices, err := (kernel.Devices{}).Mapped()
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range devices {
		if device.Suspended {
			return false
		}
	}
	return len(devices) > 0
}
