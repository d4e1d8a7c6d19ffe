package lvm_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// holding is a machine on which something happens right before a device is held.
type holding struct {
	*lvmtest.Host
	happens func()
}

func (h *holding) Hold(path string, is provision.Identity) (lvm.Holder, error) {
	if happens := h.happens; happens != nil {
		h.happens = nil
		happens()
	}
	return h.Host.Hold(path, is)
}

// Only the data of its moment makes a copy whole.
func TestACopyWhoseMomentIsLostWhileItIsOpenedIsNeverWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.took()
		s.stop()
		_, c := counted(s.host)
		c.Devices = &holding{Host: s.host, happens: func() {
			s.host.Edit(func(groups map[string]*lvmtest.Group) string {
				groups[vg.Name].Volumes["cow-snap-1"].Broken = true
				groups[vg.Name].Seqno++
				return "" // no event tells of it
			})
		}}
		s.p, s.stop = start(t, c)
		s.pool()
		s.await("lost", func(got provision.Snapshot) bool {
			return got.Copying && strings.Contains(got.Problem, "could not be written")
		})
		s.host.On("/dev/vg-a/snap-1", func(v *lvmtest.Volume) {
			if !slices.Contains(v.Tags, "berth.dev/copying=snap-1") {
				t.Errorf("it bears %v", v.Tags)
			}
		})
	})
}

func TestASnapshotThatIsTakenNeedsNothingOfTheKernelWhenItIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.took()
		clone, err := s.copy("pvc-2", 2, provision.Source{Volume: "pvc-1"})
		if err != nil {
			t.Fatal(err)
		}
		s.host.Disturb(func(h *lvmtest.Host) { h.Targets = map[string]lvmtest.Presence{"snapshot": lvmtest.Missing} })
		s.took()
		if got, err := s.copy("pvc-2", 2, provision.Source{Volume: "pvc-1"}); err != nil || got != clone {
			t.Errorf("the clone was %+v, and is %+v, %v", clone, got, err)
		}
	})
}
