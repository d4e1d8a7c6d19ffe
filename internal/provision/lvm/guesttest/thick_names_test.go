//go:build platform

package guesttest

import (
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestADeletionSparesAVolumeThatGotTheNameMeanwhileOnRealLVM(t *testing.T) {
	for _, wipe := range []provision.Wipe{provision.WipeNone, provision.WipeZero} {
		t.Run(string(wipe), func(t *testing.T) {
			b := begin(t)
			if _, err := b.p.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: b.pool, Size: 8 * mib, Wipe: wipe}); err != nil {
				t.Fatal(err)
			}
			b.stop() // it does not notice changes by others any more
			lvmtest.LVM(t, "lvrename", b.pool.Name, "pvc-1", "renamed")
			lvmtest.LVM(t, "lvcreate", "--yes", "--size", "8m", "--addtag", "theirs", "--name", "pvc-1", b.pool.Name)
			err := b.p.Delete(t.Context(), "pvc-1")
			b.p.Wait()
			if left := lvmtest.LVM(t, "lvs", "--noheadings", "-o", "lv_tags", b.pool.Name+"/pvc-1"); strings.TrimSpace(left) != "theirs" {
				t.Errorf("deleting: %v; the other volume has the tags %q", err, left)
			}
		})
	}
}
