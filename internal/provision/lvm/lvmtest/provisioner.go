//go:build platform

package lvmtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

// RealConfig returns the configuration of a provisioner over this machine, with counters of the
// processes that it starts and of the filesystems that it makes.
func RealConfig(t testing.TB) (lvm.Config, *runtest.Counter, *conformance.Formats) {
	t.Helper()
	counter := runtest.Count(run.Exec{})
	mounter, err := linux.New(linux.Config{Runner: counter})
	if err != nil {
		t.Fatal(err)
	}
	made := &conformance.Formats{Mkfs: mounter.Mkfs}
	return lvm.Config{Runner: counter, Devices: kernel.Devices{}, Mkfs: made.Make}, counter, made
}

// Start makes a provisioner and runs it until the test or the returned stop ends
// it.
func Start(t testing.TB, c lvm.Config) (p *lvm.Provisioner, stop func()) {
	t.Helper()
	p, err := lvm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p, conformance.Watching(t, p.Run)
}

// RealConformance is a conformance harness over a pool that is emptied afterwards.
func RealConformance(t testing.TB, pool provision.PoolRef) conformance.Harness {
	EmptyAfter(t, pool.Name)
	c, _, made := RealConfig(t)
	h := RealHarness(t, pool, made.Of)
	p, stop := Start(t, c)
	h.Provisioner = p
	h.Restart = func() provision.Provisioner {
		stop()
		p, stop = Start(t, c)
		return p
	}
	return h
}

// Settle waits until a pool has no deleted volume left to wipe.
func Settle(ctx context.Context, t testing.TB, p provision.Provisioner, pool provision.PoolRef) {
	t.Helper()
	Eventually(t, func() bool {
		pools, err := p.Report(ctx)
		return err == nil && !slices.ContainsFunc(pools, func(p provision.Pool) bool { return p.PoolRef == pool && len(p.Wiping) > 0 })
	}, "what a deleted volume left is still there")
}

// Eventually waits until something holds.
func Eventually(t testing.TB, ok func() bool, failure string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(2 * time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(failure)
		}
	}
}

// RealVolume returns an active logical volume with its path and identity.
func RealVolume(t testing.TB, group, name string) provision.Volume {
	t.Helper()
	mapping := doubled(group) + "-" + doubled(name)
	uuid, err := kernel.Devices{}.UUID(mapping)
	if err != nil {
		t.Fatal(err)
	}
	return provision.Volume{ID: name, Content: provision.Content{Source: "/dev/" + group + "/" + name, Identity: provision.MappedIdentity(mapping, uuid)}}
}
