//go:build platform

package guesttest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device/devicetest"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

var (
	vg   = provision.PoolRef{Type: provision.LVM, Name: "vg-made"}
	thin = provision.PoolRef{Type: provision.LVMThin, Name: "vg-made/thin"}
)

func TestAGroupIsMadeOfEmptyDisksAndGrowsByOneThatIsPluggedIn(t *testing.T) {
	n := start(t)
	n.pull(n.disks[1])
	n.ensure(provision.PoolWish{Pool: vg, Disks: n.free()}, provision.PoolMade)
	n.ensure(provision.PoolWish{Pool: vg}, provision.PoolAsAsked)
	before := n.pool(vg.Name)
	if before.Total < 3<<30 || before.Free != before.Total || before.Problem != "" {
		t.Fatalf("made %+v", before)
	}
	if tags := lvmtest.LVM(t, "vgs", "--noheadings", "-o", "vg_tags", vg.Name); strings.TrimSpace(tags) != "berth.dev/managed=vg-made" {
		t.Errorf("it bears the tags %q", tags)
	}
	n.scan()
	lvmtest.Eventually(t, func() bool { return len(n.free()) == 1 }, "the disk that was plugged in is not noticed")
	n.ensure(provision.PoolWish{Pool: vg, Disks: n.free()}, provision.PoolGrown)
	if after := n.pool(vg.Name); after.Total != 2*before.Total || after.Problem != "" {
		t.Errorf("grown to %+v", after)
	}
	n.restart()
	n.ensure(provision.PoolWish{Pool: vg}, provision.PoolAsAsked)
	v, err := n.Create(t.Context(), provision.CreateRequest{ID: "pvc-large", Pool: vg, Size: before.Total + 64<<20, Wipe: provision.WipeNone})
	if err != nil || v.Problem != "" {
		t.Errorf("a volume that needs both disks: %+v, %v", v, err)
	}
	if err := n.Delete(t.Context(), "pvc-large"); err != nil {
		t.Error(err)
	}
}

func TestADiskThatCarriesAnythingIsNeverTaken(t *testing.T) {
	n := start(t)
	names := n.free()
	if len(names) != 2 {
		t.Fatalf("%v are free", names)
	}
	for name, use := range map[string]func(path string){
		"a filesystem":          func(path string) { command(t, "mkfs.ext4", "-q", "-F", path) },
		"a partition table":     func(path string) { n.partition(path) },
		"a physical volume":     func(path string) { lvmtest.LVM(t, "pvcreate", "--yes", path) },
		"a MiB of noise at end": func(path string) { n.noise(path, -1<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			path := n.disks[1]
			devicetest.Clear(t, path)
			use(path)
			before := n.digest(path)
			o := n.ensure(provision.PoolWish{Pool: vg, Disks: n.named(path)}, provision.DisksRefused)
			t.Log(o.Message)
			if n.digest(path) != before {
				t.Error("the disk was written")
			}
		})
	}
	if groups := lvmtest.LVM(t, "vgs", "--noheadings", "-o", "vg_name"); strings.TrimSpace(groups) != "" {
		t.Errorf("there are volume groups: %s", groups)
	}
	lvmtest.LVM(t, "pvs")
	devicetest.Clear(t, n.disks[1])
	lvmtest.Eventually(t, func() bool { return len(n.free()) == 2 }, "the disk that was cleared is not free")
	n.ensure(provision.PoolWish{Pool: vg, Disks: n.free()}, provision.PoolMade)
}

// This keeps a disk safe that another process writes to just after it was proved to be empty.
func TestLVMItselfTakesNoDiskWithASignatureUnlessItIsTold(t *testing.T) {
	n := start(t)
	path := n.disks[0]
	for name, use := range map[string]func(){
		"a filesystem":      func() { command(t, "mkfs.ext4", "-q", "-F", path) },
		"a partition table": func() { n.partition(path) },
	} {
		devicetest.Clear(t, path)
		use()
		before := n.digest(path)
		args := []string{"vgcreate", "--config", "activation{udev_sync=0 udev_rules=0} devices{obtain_device_list_from_udev=0}", vg.Name, path}
		if out, err := (run.Exec{}).Change(run.Command{Operation: "vgcreate", Program: "lvm", Args: args}); err == nil {
			t.Errorf("LVM took a disk with %s: %s", name, out)
		}
		if n.digest(path) != before {
			t.Errorf("LVM wrote to a disk with %s", name)
		}
	}
}

func TestAThinPoolIsMadeKeptAtItsShareAndExtendedAsItFills(t *testing.T) {
	n := start(t)
	extension := provision.Extension{At: 80, By: 20}
	n.ensure(provision.PoolWish{Pool: vg, Disks: n.free()[:1]}, provision.PoolMade)
	n.ensure(provision.PoolWish{Pool: thin, SizePercent: 5, Extension: extension}, provision.PoolMade)
	first := n.pool(thin.Name)
	group := n.pool(vg.Name)
	if first.Total > group.Total/20 || first.Total < group.Total/20-4<<20 || first.Free != first.Total || first.Problem != "" {
		t.Fatalf("of %d bytes was made %+v", group.Total, first)
	}
	columns := lvmtest.LVM(t, "lvs", "--noheadings", "--units", "k", "--nosuffix", "--separator", " ", "-o", "lv_tags,chunk_size,lv_metadata_size,zero", thin.Name)
	t.Log(columns)
	if got := strings.Fields(columns); !slices.Equal(got, []string{"berth.dev/managed=thin", "64.00", "8192.00", "zero"}) {
		t.Errorf("made as %v", got)
	}
	n.ensure(provision.PoolWish{Pool: thin, SizePercent: 5, Extension: extension}, provision.PoolAsAsked)
	n.ensure(provision.PoolWish{Pool: vg, Disks: n.free()}, provision.PoolGrown)
	n.ensure(provision.PoolWish{Pool: thin, SizePercent: 5, Extension: extension}, provision.PoolGrown)
	second := n.pool(thin.Name)
	if second.Total < 2*first.Total {
		t.Errorf("with the group's size doubled, of %d bytes became %d", first.Total, second.Total)
	}
	v, err := n.Create(t.Context(), provision.CreateRequest{ID: "pvc-fills", Pool: thin, Size: second.Total, Limits: provision.Limits{Overprovision: 200}})
	if err != nil {
		t.Fatal(err)
	}
	n.fill(v.Content.Source, second.Total*85/100)
	var third provision.Pool
	lvmtest.Eventually(t, func() bool {
		third = n.pool(thin.Name)
		return third.Fill.Data > second.Total*80/100
	}, "the fill is not noticed")
	n.ensure(provision.PoolWish{Pool: thin, SizePercent: 5, Extension: extension}, provision.PoolExtended)
	n.ensure(provision.PoolWish{Pool: thin, SizePercent: 5, Extension: extension}, provision.PoolAsAsked)
	if third = n.pool(thin.Name); third.Total < second.Total*119/100 || third.Problem != "" {
		t.Errorf("of %+v became %+v", second, third)
	}
	if err := n.Delete(t.Context(), "pvc-fills"); err != nil {
		t.Error(err)
	}
}

// pull takes a disk out of the machine, as far as the kernel is concerned.
func (n *node) pull(path string) {
	n.t.Helper()
	n.write("/sys/block/"+filepath.Base(path)+"/device/delete", "1")
	lvmtest.Eventually(n.t, func() bool { return len(n.free()) == 1 }, "the disk that was pulled is still there")
}

// scan finds the disks that were pulled.
func (n *node) scan() {
	n.t.Helper()
	hosts, err := filepath.Glob("/sys/class/scsi_host/*/scan")
	if err != nil {
		n.t.Fatal(err)
	}
	for _, host := range hosts {
		n.write(host, "- - -")
	}
}

func (n *node) write(path, text string) {
	n.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		n.t.Fatal(err)
	}
}
