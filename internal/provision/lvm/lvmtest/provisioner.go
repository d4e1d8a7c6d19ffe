//go:build platform

package lvmtest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/run"
)

// Mkfs makes filesystems and counts them by device.
type Mkfs struct {
	mounter *linux.Mounter
	mu      sync.Mutex
	made    map[string]int
}

// Make makes a filesystem.
func (m *Mkfs) Make(ctx context.Context, device, fs, options string) error {
	m.mu.Lock()
	if m.made == nil {
		m.made = map[string]int{}
	}
	m.made[device]++
	m.mu.Unlock()
	return m.mounter.Mkfs(ctx, device, fs, options)
}

// Of is how many were made on a device.
func (m *Mkfs) Of(device string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made[device]
}

// RealConfig is a provisioner's over this machine, with what counts its processes.
func RealConfig(t testing.TB) (lvm.Config, *run.Counter, *Mkfs) {
	t.Helper()
	counter := run.Count(run.Exec{})
	mounter, err := linux.New(linux.Config{Runner: counter})
	if err != nil {
		t.Fatal(err)
	}
	m := &Mkfs{mounter: mounter}
	return lvm.Config{Runner: counter, Devices: kernel.Devices{}, Mkfs: m.Make}, counter, m
}

// Start makes a provisioner and runs it until the test or the returned stop ends
// it.
func Start(t testing.TB, c lvm.Config) (p *lvm.Provisioner, stop func()) {
	t.Helper()
	p, err := lvm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Errorf("watching: %v", err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return p, stop
}

// RealConformance is a conformance harness over a pool that is emptied afterwards.
func RealConformance(t testing.TB, pool provision.PoolRef) conformance.Harness {
	EmptyAfter(t, pool.Name)
	c, _, mkfs := RealConfig(t)
	h := RealHarness(t, pool, mkfs.Of)
	p, stop := Start(t, c)
	h.Provisioner = p
	h.Restart = func() provision.Provisioner {
		stop()
		p, stop = Start(t, c)
		return p
	}
	return h
}

// Settle waits until nothing of a deleted volume is left in a pool.
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
