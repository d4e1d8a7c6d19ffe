//go:build platform

package lvm_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.run", "TestExplore")
	os.Exit(m.Run())
}

func TestExplore(t *testing.T) {
	disks := lvmtest.Disks(t, 2)
	x := func(prog string, args ...string) (string, error) {
		start := time.Now()
		before, _ := kernel.Devices{}.Sequence(disks[0])
		out, err := run.Exec{}.Change(run.Command{Operation: args[0], Program: prog, Args: args})
		after, _ := kernel.Devices{}.Sequence(disks[0])
		t.Logf("$ %s %s   [seqno +%d, %v] err=%v\n%s", prog, strings.Join(args, " "), int64(after)-int64(before), time.Since(start).Round(time.Millisecond), err, out)
		return string(out), err
	}
	cfg := "activation{udev_sync=0 udev_rules=0 monitoring=0} devices{obtain_device_list_from_udev=0}"
	lvm := func(args ...string) error {
		_, err := x("lvm", append([]string{args[0], "--config", cfg}, args[1:]...)...)
		return err
	}
	dmeventd := func() {
		names, _ := filepath.Glob("/proc/[0-9]*/comm")
		for _, n := range names {
			if b, _ := os.ReadFile(n); strings.HasPrefix(string(b), "dmeventd") {
				t.Logf("dmeventd runs: %s", n)
			}
		}
	}
	show := func(what string) {
		t.Logf("===== %s", what)
		lvm("lvs", "-a", "vg", "-o", "lv_name,lv_attr,pool_lv,origin,lv_size,lv_health_status,lv_check_needed,lv_active_locally,lv_device_open,data_percent,metadata_percent,lv_layout,lv_role,lv_tags,transaction_id,lv_dm_path,zero,seg_monitor")
		x("dmsetup", "status")
		dmeventd()
	}
	table := func() { x("dmsetup", "table"); x("dmsetup", "info", "-c", "-o", "name,uuid,open") }
	x("lvm", "version")
	dmeventd()
	lvm("vgcreate", "--yes", "-ff", "vg", disks[0])
	lvm("lvcreate", "--yes", "--type", "thin-pool", "--size", "256M", "--name", "pool", "vg")
	show("new pool")
	table()
	lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "pool", "--virtualsize", "100000256b", "--name", "pvc-1", "--addtag", "berth.dev/volume=pvc-1", "--addtag", "berth.dev/label/a=b", "vg")
	show("first thin")
	table()
	lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "pool", "--virtualsize", "100000256b", "--name", "pvc-2", "vg")
	lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "pool", "--virtualsize", "900000256b", "--name", "pvc-3", "vg")
	lvm("lvchange", "--yes", "--addtag", "berth.dev/fs=ext4", "vg/pvc-2")
	lvm("lvextend", "--yes", "--size", "200000000b", "vg/pvc-2")
	lvm("lvextend", "--yes", "--size", "300000256b", "vg/pvc-2")
	lvm("lvremove", "--yes", "vg/pvc-3")
	lvm("lvremove", "--yes", "vg/pvc-2")
	lvm("lvcreate", "--yes", "--snapshot", "--name", "snap", "vg/pvc-1")
	lvm("lvcreate", "--yes", "--snapshot", "--size", "8M", "--name", "cow", "vg/pvc-1")
	show("snapshots")
	x("lvm", "fullreport", "--config", "report{compact_output=0 list_item_separator=\",\"} "+cfg, "--reportformat", "json", "--units", "b", "--nosuffix", "--binary",
		"--configreport", "vg", "-o", "vg_name,vg_uuid,vg_seqno", "--configreport", "pv", "-o", "pv_name", "--configreport", "lv", "-o", "lv_name,lv_size,lv_tags,lv_active_locally,lv_device_open,lv_health_status,lv_attr,pool_lv,origin,lv_check_needed,lv_metadata_size",
		"--configreport", "pvseg", "-o", ",", "--configreport", "seg", "-o", ",", "vg")
	lvm("lvremove", "--yes", "vg/pvc-1")
	show("origin of a snapshot and a cow removed")
	lvm("lvremove", "--yes", "vg/cow")
	lvm("lvremove", "--yes", "vg/snap")
	lvm("lvremove", "--yes", "vg/pvc-1")
	show("all removed")
	lvm("vgchange", "--activate", "n", "vg")
	show("inactive")
	lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "pool", "--virtualsize", "64M", "--name", "pvc-4", "--addtag", "a", "vg")
	show("thin made in an inactive pool")
	lvm("lvremove", "--yes", "vg/pvc-4")
	show("and removed")
	lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "pool", "--virtualsize", "64M", "--name", "pvc-5", "vg")
	lvm("vgchange", "--activate", "n", "vg")
	lvm("lvchange", "--yes", "--activate", "y", "vg/pvc-5")
	show("only the volume activated")
	lvm("lvchange", "--yes", "--activate", "y", "vg/pool", "vg/pvc-5")
	show("pool activated too")
	lvm("lvremove", "--yes", "vg/pvc-5")
	show("removed")
	if err := lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "nosuch", "--virtualsize", "64M", "--name", "pvc-6", "vg"); err == nil {
		t.Error("a pool was made")
	}
	lvm("lvcreate", "--yes", "--type", "thin-pool", "--errorwhenfull", "y", "--size", "64M", "--name", "small", "vg")
	lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "small", "--virtualsize", "128M", "--name", "pvc-7", "vg")
	lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "small", "--virtualsize", "128M", "--name", "pvc-8", "vg")
	write := func(dev string, n int) {
		f, err := os.OpenFile(dev, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 0xa5
		}
		for i := range n {
			if _, err = f.Write(b); err != nil {
				t.Logf("write %d: %v", i, err)
				break
			}
		}
		t.Logf("sync: %v, close: %v", f.Sync(), f.Close())
	}
	write("/dev/vg/pvc-7", 40)
	show("partly full")
	write("/dev/vg/pvc-8", 40)
	show("out of data")
	lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "small", "--virtualsize", "8M", "--name", "pvc-9", "vg")
	show("created in a full pool")
	lvm("lvremove", "--yes", "vg/pvc-8")
	show("one deleted")
	write("/dev/vg/pvc-9", 8)
	lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "small", "--virtualsize", "128M", "--name", "pvc-10", "vg")
	write("/dev/vg/pvc-10", 60)
	show("full again")
	lvm("lvextend", "--yes", "--size", "128M", "vg/small")
	show("pool extended")
	lvm("lvremove", "--yes", "vg/small")
	show("small pool removed")
	lvm("lvcreate", "--yes", "--type", "thin-pool", "--zero", "n", "--size", "64M", "--name", "dirty", "vg")
	lvm("lvcreate", "--yes", "--type", "thin", "--thinpool", "dirty", "--virtualsize", "8M", "--name", "pvc-11", "vg")
	show("no zeroing")
	table()
	lvm("lvchange", "--zero", "y", "vg/dirty")
	show("zeroing on")
	lvm("lvcreate", "--yes", "--size", "64M", "--addtag", "berth.dev/volume=pvc-12", "--name", "pvc-12", "vg")
	lvm("lvconvert", "--yes", "--type", "thin-pool", "vg/pvc-12")
	show("a volume made a pool")
	x("lvm", "lvcreate", "--config", "activation{udev_sync=0 udev_rules=0} devices{obtain_device_list_from_udev=0}", "--yes", "--type", "thin", "--thinpool", "pool", "--virtualsize", "64M", "--name", "pvc-13", "vg")
	show("monitored")
	lvm("lvremove", "--yes", "vg/pvc-13")
	show("monitored, removed without monitoring")
	lvm("vgremove", "--yes", "--force", "vg")
	dmeventd()
}
