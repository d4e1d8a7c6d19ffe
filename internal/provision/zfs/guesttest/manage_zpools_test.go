//go:build platform

package guesttest

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

// A machine that ends leaves its zpools as they are: nothing on them says that they are not in
// use.
func TestAMirrorIsMadeAndComesBackAfterTheMachineEnded(t *testing.T) {
	n := begin(t)
	n.ensure(mirror, provision.PoolMade)
	n.ensure(mirror, provision.PoolAsAsked)
	for property, want := range map[string]string{"comment": "berth.dev:Mirror:2:12", "ashift": "12", "cachefile": "none"} {
		if got := zfstest.Run(t, "zpool", "get", "-H", "-o", "value", property, "made"); got != want {
			t.Errorf("its %s is %s, want %s", property, got, want)
		}
	}
	status := zfstest.Run(t, "zpool", "status", "-P", "made")
	if !strings.Contains(status, "mirror-0") || strings.Count(status, "/dev/disk/by-id/") != 2 {
		t.Errorf("it is made of\n%s", status)
	}
	v, err := n.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: tank, Size: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	blockdevtest.WriteAt(t, v.Content.Source, "kept", 0)
	n.stop()
	zfstest.Run(t, "udevadm", "settle")
	zfstest.Run(t, "zpool", "sync", "made")
	zfstest.Run(t, "zpool", "export", "-F", "made")
	n.stop = nil
	n.restart()
	n.ensure(mirror, provision.PoolImported)
	n.ensure(mirror, provision.PoolAsAsked)
	got, err := n.Get(t.Context(), "pvc-1")
	if err != nil || got != v || blockdevtest.ReadAt(t, got.Content.Source, 4, 0) != "kept" {
		t.Errorf("the volume is %+v, %v", got, err)
	}
	if err := n.Delete(t.Context(), "pvc-1"); err != nil {
		t.Error(err)
	}
}

func TestConformanceOfManagedZpoolsOnRealZFS(t *testing.T) {
	conformance.RunGroupManager(t, func(t *testing.T) conformance.Managed {
		n := begin(t)
		names := []string{n.named(n.disks[0]), n.named(n.disks[1])}
		plugged := 0
		return conformance.Managed{
			Node: n, Group: tank,
			Restart: func() conformance.ManagedNode {
				n.restart()
				return n
			},
			Plug: func() string {
				plugged++
				return names[plugged-1]
			},
			Use: func(disk string) {
				for i, name := range names {
					if name == disk {
						blockdevtest.WriteAt(t, n.disks[i], strings.Repeat("data", 1024), 1<<20)
					}
				}
			},
			PutGroup: func() {
				zfstest.Run(t, "zpool", "create", "-o", "cachefile=none", "-O", "mountpoint=none", "made", n.disks[1])
				zfstest.Run(t, "udevadm", "settle")
			},
		}
	})
}

// killer kills the command that makes a zpool after a while.
type killer struct {
	run.Runner
	t     *testing.T
	after time.Duration
}

func (k killer) Change(c run.Command) ([]byte, error) {
	if c.Operation != "zpool create" {
		return k.Runner.Change(c)
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), k.after)
	defer cancel()
	return k.Query(ctx, c)
}

// The killed command leaves a zpool, empty disks, or disks that say what they carry.
func TestTheMakingOfAZpoolMayBeKilledAtAnyMoment(t *testing.T) {
	for _, after := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			n := begin(t)
			n.around = func(r run.Runner) run.Runner { return killer{r, t, after} }
			n.restart()
			_, err := n.Ensure(t.Context(), n.wish(mirror))
			t.Logf("killed: %v", err)
			n.around = nil
			n.restart()
			zfstest.Run(t, "udevadm", "settle")
			w := n.wish(mirror)
			o, err := n.Ensure(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("of %v: %+v", w.Disks, o)
			switch {
			case o.Reason == provision.PoolMade, o.Reason == provision.PoolAsAsked, o.Reason == provision.PoolImported:
				n.ensure(mirror, provision.PoolAsAsked)
			case o.Reason == provision.PoolAwaitsDisks && len(w.Disks) == 0:
				for _, p := range n.report() {
					t.Logf("%s: %s", p.Name, p.Problem)
				}
			default:
				t.Errorf("it ends as %+v", o)
			}
			if _, err := os.Stat("/proc/spl/kstat/zfs/made"); (err == nil) == (o.Reason == provision.PoolAwaitsDisks) {
				t.Errorf("the kernel knows the zpool: %v; told %s", err == nil, o.Reason)
			}
		})
	}
}
