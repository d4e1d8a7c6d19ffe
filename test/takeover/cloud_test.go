//go:build platform

package takeover

import (
	"net"
	"path/filepath"
	"testing"

	"k8s.io/utils/clock"

	"berth.dev/berth/internal/provision/shared/simcloud"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// diskHandle is the disk's handle.
func diskHandle() string {
	if *cloud {
		return simcloud.Scheme + ":///" + lun
	}
	return simdisk.Scheme + ":///" + lun
}

// cloudSocket is where controllers find the cloud.
func cloudSocket() string { return filepath.Join(disks(), "cloud.sock") }

// serveCloud plays the cloud, which outlives all nodes and their controllers. A machine keeps its disks without power.
func serveCloud(t *testing.T, nodes []*node) {
	t.Helper()
	if !*cloud {
		return
	}
	c := simcloud.New(simcloud.Config{Clock: clock.RealClock{}, Dir: disks()})
	for _, n := range nodes {
		c.AddMachine(n.name)
	}
	if err := c.Create(t.Context(), diskHandle(), simcloud.Spec{Identity: identity, Bytes: size, Shares: len(nodes)}); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", cloudSocket())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := simcloud.Serve(t.Context(), l, c); err != nil {
			t.Errorf("serving the cloud: %v", err)
		}
	}()
	t.Cleanup(func() {
		tally := c.Tally()
		t.Logf("the cloud was asked %v", tally.Calls)
		if tally.Calls["change"] == 0 {
			t.Error("the disk was attached without the cloud")
		}
	})
}
