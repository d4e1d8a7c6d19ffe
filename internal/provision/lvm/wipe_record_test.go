package lvm_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// steps records the offsets, in units, at which the steps of wiping begin. As many as last
// succeed. All others fail, as if the process ended.
type steps struct {
	mu    sync.Mutex
	begun []int64
	last  int
}

func (s *steps) wiping(_ string, offset, _ int64, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.begun) == s.last {
		return errors.New("the process ends here")
	}
	s.begun = append(s.begun, offset/unit)
	return do()
}

func (s *steps) wait(t *testing.T, want ...int64) {
	t.Helper()
	eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Equal(s.begun, want)
	}, "not these steps were taken")
}

func tagsOf(host *lvmtest.Host, id string) (tags string) {
	host.On("/dev/vg-a/"+id, func(v *lvmtest.Volume) {
		if v != nil {
			tags = strings.Join(v.Tags, ",")
		}
	})
	return tags
}

func TestAfterARestartWipingGoesOnBehindTheRecordedProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		c.WipeStep, c.WipeRecord = unit, 2*unit
		first := &steps{last: 5}
		host.Disturb(func(h *lvmtest.Host) { h.Wiping = first.wiping })
		p, stop := start(t, c)
		holdsSecret(t, host, p, request("pvc-1", 8))
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Fatal(err)
		}
		first.wait(t, 0, 1, 2, 3, 4)
		stop()
		if tags := tagsOf(host, "pvc-1"); !strings.Contains(tags, "berth.dev/wiped=16777216") || strings.Count(tags, "wiped=") != 1 {
			t.Errorf("recorded is %s", tags)
		}
		second := &steps{last: 99}
		host.Disturb(func(h *lvmtest.Host) { h.Wiping = second.wiping })
		p, _ = start(t, c)
		settle(t, p)
		second.wait(t, 4, 5, 6, 7)
		if v := create(t, p, request("pvc-2", 100)); shows(host, v) {
			t.Error("something is left")
		}
	})
}

// An administrator may turn a logical volume that is being wiped into a volume again.
func TestAVolumeDeletedOnceMoreIsWipedFromItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		c.WipeStep, c.WipeRecord = unit, unit
		first := &steps{last: 3}
		host.Disturb(func(h *lvmtest.Host) { h.Wiping = first.wiping })
		p, stop := start(t, c)
		v := holdsSecret(t, host, p, request("pvc-1", 4))
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Fatal(err)
		}
		first.wait(t, 0, 1, 2)
		stop()
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			v, g := groups[vg.Name].Volumes["pvc-1"], groups[vg.Name]
			for i := range v.Tags {
				v.Tags[i] = strings.Replace(v.Tags[i], "/wiping=", "/volume=", 1)
			}
			g.Seqno++
			return g.Device
		})
		host.WriteAt(v.Content.Source, secret, 4096)
		host.Disturb(func(h *lvmtest.Host) { h.Wiping = nil })
		p, _ = start(t, c)
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Fatal(err)
		}
		settle(t, p)
		if v := create(t, p, request("pvc-2", 100)); shows(host, v) {
			t.Error("something is left")
		}
	})
}

func TestNoProgressStaysRecordedForADiskThatIgnoresWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		c.WipeStep, c.WipeRecord = unit, unit
		lied := false
		var told []string
		host.Disturb(func(h *lvmtest.Host) {
			h.Wiping = func(_ string, offset, _ int64, do func() error) error {
				told = append(told, tagsOf(host, "pvc-1"))
				if offset == 2*unit && !lied {
					lied = true
					return nil
				}
				return do()
			}
		})
		p, _ := start(t, c)
		holdsSecret(t, host, p, request("pvc-1", 4))
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Fatal(err)
		}
		settle(t, p)
		if last := told[len(told)-4:]; len(told) != 3+4 || strings.Contains(last[0], "wiped=") {
			t.Errorf("%d steps were taken, the last four of them with %q", len(told), last)
		}
	})
}

// discarding is a host whose disks read as zeros where something was discarded.
type discarding struct{ lvm.Devices }

func (d discarding) Hold(path string, is provision.Identity) (lvm.Holder, error) {
	h, err := d.Devices.Hold(path, is)
	return discards{h}, err
}

type discards struct{ lvm.Holder }

func (d discards) Discard(offset, length int64) error { return d.Overwrite(offset, length) }

// A later discard may do nothing, and then all bytes have to be overwritten.
func TestTheProgressOfDiscardsIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		c.Devices, c.WipeStep, c.WipeRecord = discarding{c.Devices}, unit, unit
		var told []string
		host.Disturb(func(h *lvmtest.Host) {
			h.Wiping = func(_ string, _, _ int64, do func() error) error {
				told = append(told, tagsOf(host, "pvc-1"))
				return do()
			}
		})
		p, _ := start(t, c)
		r := request("pvc-1", 4)
		r.Wipe = provision.WipeDiscard
		holdsSecret(t, host, p, r)
		remove(t, p, "pvc-1")
		settle(t, p)
		if len(told) != 4 || strings.Contains(strings.Join(told, ","), "wiped=") {
			t.Errorf("the steps were taken with %q", told)
		}
	})
}
