//go:build platform

package guesttest

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// lateUdev plays the udev of a host on which udev is late. While LVM makes the first volume, udev
// removes the node of the pool's metadata: it mistakes it for the one LVM removed just before.
type lateUdev struct {
	run.Runner

	check string // the program that LVM runs as thin_check
	took  atomic.Bool
}

func (u *lateUdev) Change(c run.Command) ([]byte, error) {
	if c.Operation == "lvcreate" && !u.took.Swap(true) {
		c.Args = slices.Clone(c.Args)
		c.Args[slices.Index(c.Args, "--config")+1] += ` global{thin_check_executable="` + u.check + `"}`
	}
	return u.Runner.Change(c)
}

func TestTheFirstVolumeOfAPoolIsMadeThoughALateUdevTakesTheNodesOfThePoolOnRealLVM(t *testing.T) {
	pool := thinPool(t, 64)
	lvmtest.EmptyAfter(t, pool.Name)
	c, counter, _ := lvmtest.RealConfig(t)
	udev := &lateUdev{Runner: c.Runner, check: filepath.Join(t.TempDir(), "thin_check")}
	node := "/dev/mapper/vg--berth-pool_tmeta"
	if err := os.WriteFile(udev.check, []byte("#!/bin/sh\nrm "+node+"\nexec thin_check \"$@\"\n"), 0o700); err != nil { //nolint:gosec // LVM runs it
		t.Fatal(err)
	}
	c.Runner = udev
	p, _ := lvmtest.Start(t, c)
	counter.Take()
	v := made(t, p, request(pool, "pvc-1", 32))
	if n := counter.Take()["lvcreate"]; n != 2 {
		t.Fatalf("LVM was asked to make the volume %d times, so that udev took nothing", n)
	}
	if err := overwrite(v.Content.Source, 1*mib); err != nil {
		t.Error(err)
	}
}
