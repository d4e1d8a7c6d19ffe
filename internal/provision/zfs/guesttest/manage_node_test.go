//go:build platform

package guesttest

import (
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/device/devicetest"
	"berth.dev/berth/internal/provision/device/kernel"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

var (
	tank   = provision.PoolRef{Type: provision.ZFS, Name: "zfs:made"}
	mirror = provision.Layout{Redundancy: provision.Mirror, Width: 2, Ashift: 12}
)

// node is this machine, whose test disks are empty at first.
type node struct {
	*provision.Mux
	t      *testing.T
	disks  []string
	around func(run.Runner) run.Runner
	stop   func()
}

func begin(t *testing.T) *node {
	t.Helper()
	zfstest.Run(t, "modprobe", "zfs")
	n := &node{t: t, disks: blockdevtest.Disks(t, 2)}
	n.tidy()
	n.restart()
	t.Cleanup(func() {
		n.stop()
		n.tidy()
	})
	return n
}

// restart runs the provisioners anew.
func (n *node) restart() {
	n.t.Helper()
	if n.stop != nil {
		n.stop()
	}
	whole := devicetest.Lender(n.t, kernel.Disks{})
	c, _, _ := zfstest.RealConfig(n.t)
	c.Disks = whole
	if n.around != nil {
		c.Runner = n.around(c.Runner)
	}
	zpools, err := zfs.New(c)
	if err != nil {
		n.t.Fatal(err)
	}
	n.stop = conformance.Watching(n.t, whole.Run, zpools.Run)
	n.Mux = provision.NewMux(
		provision.Member{Types: []string{provision.ZFS}, Provisioner: zpools},
		provision.Member{Types: []string{provision.Device}, Provisioner: whole},
	)
}

// tidy destroys all zpools and empties the disks.
func (n *node) tidy() {
	n.t.Helper()
	for zpool := range strings.FieldsSeq(zfstest.Run(n.t, "zpool", "list", "-H", "-o", "name")) {
		zfstest.Run(n.t, "udevadm", "settle")
		zfstest.Run(n.t, "zpool", "destroy", "-f", zpool)
	}
	for _, path := range n.disks {
		n.clear(path)
	}
	zfstest.Run(n.t, "udevadm", "settle")
}

// clear makes the ends of a disk empty, where ZFS has its labels, and forgets its
// partitions.
func (n *node) clear(path string) {
	n.t.Helper()
	zfstest.Run(n.t, "udevadm", "settle")
	devicetest.ClearEnds(n.t, path, 16<<20)
}

// named returns the name of the pool of a test disk, whatever is on the disk.
func (n *node) named(path string) string {
	n.t.Helper()
	for _, p := range n.report() {
		if p.Type == provision.Device && slices.Contains(p.Paths, path) {
			return p.Name
		}
	}
	n.t.Fatalf("%s is not reported", path)
	return ""
}

func (n *node) report() []provision.Pool {
	n.t.Helper()
	pools, err := n.Report(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return pools
}

// wish returns a wish for a zpool of the test disks that are reported as empty, as far as they
// make whole vdevs.
func (n *node) wish(z provision.Layout) provision.PoolWish {
	w := provision.PoolWish{Pool: tank, Layout: z}
	for _, p := range n.report() {
		ours := slices.ContainsFunc(n.disks, func(d string) bool { return slices.Contains(p.Paths, d) })
		switch {
		case p.Type != provision.Device || !ours:
		case p.Problem == "":
			w.Disks = append(w.Disks, p.Name)
		default:
			w.Search = append(w.Search, p.Paths[0])
		}
	}
	w.Disks = w.Disks[:len(w.Disks)/z.Width*z.Width]
	return w
}

func (n *node) ensure(z provision.Layout, want provision.Reason) {
	n.t.Helper()
	got, err := n.Ensure(n.t.Context(), n.wish(z))
	if err != nil || got.Reason != want {
		n.t.Fatalf("it is %+v, %v; want %s", got, err, want)
	}
	n.t.Log(got.Message)
}
