//go:build platform

package guesttest

import (
	"crypto/sha256"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
	"berth.dev/berth/internal/provision/device/gpt"
	"berth.dev/berth/internal/provision/device/kernel"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// node is this machine, whose test disks are empty at first.
type node struct {
	*provision.Mux
	t     *testing.T
	disks []string
	stop  func()
}

func start(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, disks: blockdevtest.Disks(t, 2)}
	for _, path := range n.disks {
		devicetest.Clear(n.t, path)
	}
	n.restart()
	t.Cleanup(n.tearDown)
	return n
}

// restart runs the provisioners anew.
func (n *node) restart() {
	n.t.Helper()
	if n.stop != nil {
		n.stop()
	}
	whole := devicetest.Lender(n.t, kernel.Disks{})
	c, _, _ := lvmtest.RealConfig(n.t)
	c.Disks = whole
	groups, stop := lvmtest.Start(n.t, c)
	stopDisks := conformance.Watching(n.t, whole.Run)
	n.stop = func() { stop(); stopDisks() }
	n.Mux = provision.NewMux(
		provision.Member{Types: []string{provision.LVM, provision.LVMThin}, Provisioner: groups},
		provision.Member{Types: []string{provision.Device}, Provisioner: whole},
	)
}

// tearDown leaves empty disks.
func (n *node) tearDown() {
	n.stop()
	n.scan()
	for group := range strings.FieldsSeq(lvmtest.LVM(n.t, "vgs", "--noheadings", "-o", "vg_name")) {
		lvmtest.LVM(n.t, "vgremove", "--yes", "--force", group)
	}
	for _, path := range n.disks {
		lvmtest.Eventually(n.t, func() bool { _, ok := (kernel.Disks{}).Find(filepath.Base(path)); return ok }, path+" is not there")
		devicetest.Clear(n.t, path)
	}
}

func (n *node) ensure(w provision.PoolWish, want provision.Reason) provision.Outcome {
	n.t.Helper()
	got, err := n.Ensure(n.t.Context(), w)
	if err != nil || got.Reason != want {
		n.t.Fatalf("%+v is %+v, %v; want %s", w, got, err, want)
	}
	n.t.Log(got.Message)
	return got
}

func (n *node) report() []provision.Pool {
	n.t.Helper()
	pools, err := n.Report(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return pools
}

// pool returns a pool as it is reported.
func (n *node) pool(name string) provision.Pool {
	n.t.Helper()
	pools := n.report()
	i := slices.IndexFunc(pools, func(p provision.Pool) bool { return p.Name == name })
	if i < 0 {
		n.t.Fatalf("%s is not reported: %+v", name, pools)
	}
	return pools[i]
}

// free returns the names of the test disks that are reported as empty.
func (n *node) free() (names []string) {
	n.t.Helper()
	for _, p := range n.report() {
		if p.Type == provision.Device && p.Problem == "" && slices.ContainsFunc(n.disks, func(d string) bool { return slices.Contains(p.Paths, d) }) {
			names = append(names, p.Name)
		}
	}
	return names
}

// named returns the name of a test disk's pool, whatever is on the disk.
func (n *node) named(path string) []string {
	n.t.Helper()
	for _, p := range n.report() {
		if p.Type == provision.Device && slices.Contains(p.Paths, path) {
			return []string{p.Name}
		}
	}
	n.t.Fatalf("%s is not reported", path)
	return nil
}

func command(t *testing.T, program string, args ...string) {
	t.Helper()
	if _, err := (run.Exec{}).Change(run.Command{Operation: program, Program: program, Args: args}); err != nil {
		t.Fatal(err)
	}
}

// hold opens a disk exclusively.
func (n *node) hold(path string) device.Holder {
	n.t.Helper()
	holder, err := kernel.Disks{}.Hold(filepath.Base(path))
	if err != nil {
		n.t.Fatal(err)
	}
	return holder
}

// size of a disk.
func (n *node) size(path string) int64 {
	n.t.Helper()
	found, ok := kernel.Disks{}.Find(filepath.Base(path))
	if !ok {
		n.t.Fatalf("%s is not there", path)
	}
	return found.Size
}

// partition writes a partition table to a disk.
func (n *node) partition(path string) {
	n.t.Helper()
	holder := n.hold(path)
	defer holder.Close()
	table := gpt.Geometry{Size: n.size(path), Block: 512}
	for _, w := range table.Writes(gpt.Partition{Type: gpt.GUID{1}, ID: gpt.GUID{2}, First: 2048, Last: 9000, Name: "theirs"}) {
		if _, err := holder.WriteAt(w.Data, w.Offset); err != nil {
			n.t.Fatal(err)
		}
	}
}

// noise writes a MiB of meaningless data. A negative offset counts from the disk's end.
func (n *node) noise(path string, at int64) {
	n.t.Helper()
	if at < 0 {
		at += n.size(path)
	}
	text := strings.Repeat("noise", 1<<20/5+1)[:1<<20]
	blockdevtest.WriteAt(n.t, path, text, at)
}

// fill writes so many bytes to a device.
func (n *node) fill(path string, size int64) {
	n.t.Helper()
	if err := overwrite(path, size); err != nil {
		n.t.Fatal(err)
	}
}

// digest returns the digest of the beginning and the end of a disk.
func (n *node) digest(path string) [sha256.Size]byte {
	n.t.Helper()
	const part = 8 << 20
	return sha256.Sum256([]byte(blockdevtest.ReadAt(n.t, path, part, 0) + blockdevtest.ReadAt(n.t, path, part, n.size(path)-part)))
}
