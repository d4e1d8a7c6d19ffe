package lvm_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
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

// cowOf says that a command makes a copy-on-write snapshot.
func cowOf(c run.Command) bool { return strings.Contains(strings.Join(c.Args, " "), "berth.dev/cow=") }

func TestACopyWhoseMomentWasFixedThoughLVMFailedIsTaken(t *testing.T) {
	for name, take := range map[string]func(*site) error{
		"a snapshot": func(s *site) error { _, err := s.snapshot("snap-1", "pvc-1"); return err },
		"a clone":    func(s *site) error { _, err := s.copy("pvc-2", 2, provision.Source{Volume: "pvc-1"}); return err },
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := thick(t, 100)
			disturb(s.host, only("lvcreate", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				out, err := do()
				if cowOf(c) {
					err = exit5(c)
				}
				return out, err
			}))
			if err := take(s); err != nil {
				t.Error(err)
			}
		}))
	}
}

// What a snapshot holds is of a moment after it was asked for.
func TestAMomentThatAnEarlierAttemptFixedIsNotUsed(t *testing.T) {
	host, p := unwatched(t) // which removes nothing in the background
	create(t, p, request("pvc-1", 2))
	disturb(host, only("lvcreate", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		if cowOf(c) {
			return do()
		}
		return nil, exit5(c)
	}))
	if got, err := p.Snapshot(t.Context(), snapshotOf("pvc-1")); err == nil {
		t.Fatalf("took %+v", got)
	}
	host.WriteAt("/dev/vg-a/pvc-1", secret, 4096)
	host.Disturb(func(h *lvmtest.Host) { h.Around = nil })
	if got, err := p.Snapshot(t.Context(), snapshotOf("pvc-1")); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("took %+v, %v", got, err)
	}
}

// blinded is a machine on which a device cannot be read.
type blinded struct {
	*lvmtest.Host
	look, size error
}

func (b blinded) Look(path string, is provision.Identity) (lvm.Looker, error) {
	if b.look != nil {
		return nil, b.look
	}
	from, err := b.Host.Look(path, is)
	return unsized{from, b.size}, err
}

type unsized struct {
	lvm.Looker
	err error
}

func (u unsized) Size() (int64, error) {
	size, err := u.Looker.Size()
	return size, cmp.Or(u.err, err)
}

func TestACopyWhoseSourceCannotBeReadSaysWhy(t *testing.T) {
	broken := errors.New("a broken controller")
	for name, tc := range map[string]struct {
		devices func(*lvmtest.Host) lvm.Devices
		want    string
	}{
		"its device cannot be opened":  {func(h *lvmtest.Host) lvm.Devices { return blinded{h, broken, nil} }, "a broken controller"},
		"its device tells no size":     {func(h *lvmtest.Host) lvm.Devices { return blinded{h, nil, broken} }, "how large vg-a/cow-snap-1 is: a broken controller"},
		"its device is not to be made": {func(h *lvmtest.Host) lvm.Devices { return h }, "it cannot be activated"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := thick(t, 100)
			s.took()
			s.stop()
			_, c := counted(s.host)
			c.Devices = tc.devices(s.host)
			if tc.want == "it cannot be activated" {
				s.host.Deactivate("/dev/vg-a/cow-snap-1")
			}
			s.host.Disturb(func(h *lvmtest.Host) {
				h.Copying = func(string, int64, int64, func() error) error { return errors.New("something is written") }
				h.Around = only("lvchange", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, exit5(c) })
			})
			s.p, s.stop = start(t, c)
			s.pool()
			s.await("failing", func(got provision.Snapshot) bool { return got.Copying && strings.Contains(got.Problem, tc.want) })
		}))
	}
}

func TestNothingIsCopiedOnceTheGroupDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.took()
		s.stop()
		_, c := counted(s.host)
		silent := func(is bool) {
			s.host.Disturb(func(h *lvmtest.Host) {
				h.Around, h.Copying = nil, nil
				if is {
					h.Around = only("fullreport", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, exit5(c) })
					h.Copying = func(_ string, _, _ int64, do func() error) error { t.Error("it is copied"); return do() }
				}
			})
		}
		begun := make(chan struct{})
		c.Devices = &holding{Host: s.host, happens: func() {
			silent(true)
			s.host.Edit(func(groups map[string]*lvmtest.Group) string {
				groups[vg.Name].Seqno++ // by whom and to what end LVM does not say
				return ""
			})
			close(begun)
		}}
		s.p, s.stop = start(t, c)
		s.pool()
		<-begun
		synctest.Wait()
		silent(false)
		s.awaitWhole()
	})
}

func TestACopyWhoseMomentTheKernelGaveUpIsKnownToBeLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.host.Disturb(func(h *lvmtest.Host) {
			h.Copying = func(string, int64, int64, func() error) error {
				s.host.On("/dev/vg-a/cow-snap-1", func(v *lvmtest.Volume) { v.Broken = true })
				return errors.New("input/output error")
			}
		})
		s.took()
		synctest.Wait()
		if got, err := s.p.GetSnapshot(t.Context(), "snap-1"); err != nil || !strings.Contains(got.Problem, "could not be written") {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
