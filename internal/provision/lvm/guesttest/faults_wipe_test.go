//go:build platform

package guesttest

import (
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestAfterARestartWipingGoesOnBehindTheRecordedProgressOnRealLVM(t *testing.T) {
	newDisk(t, lvmtest.Disks(t, 1)[0], 128*mib)
	ref := lvmtest.RealGroup(t, groupName, diskPath)
	c := hasty(t)
	c.WipeRecord = 8 * mib
	p, stop := lvmtest.Start(t, c)
	v := made(t, p, request(ref, "pvc-gone", 64))
	put(t, v.Content.Source, v.Size, secret)
	if err := p.Delete(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	lvmtest.Eventually(t, func() bool {
		return strings.Contains(lvmtest.LVM(t, "lvs", "--noheadings", "--options", "lv_tags", groupName), "berth.dev/wiped=")
	}, "nothing is recorded")
	stop()
	const mark = "written where nothing is wiped again"
	blockdevtest.WriteAt(t, v.Content.Source, mark, 64<<10) // behind the part of a new volume that LVM zeroes

	p, _ = lvmtest.Start(t, c)
	lvmtest.Settle(t.Context(), t, p, ref)
	all := made(t, p, provision.CreateRequest{ID: "pvc-all", Pool: ref, Size: pool(t, p, ref).Free, Wipe: provision.WipeNone})
	content := blockdevtest.ReadAt(t, all.Content.Source, int(all.Size), 0)
	if strings.Contains(content, secret) {
		t.Error("what the volume held is read")
	}
	if !strings.Contains(content, mark) {
		t.Error("it was wiped from its beginning again")
	}
	emptied(t, p, ref)
}
