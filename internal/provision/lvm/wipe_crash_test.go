package lvm_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// wiped counts the overwriting of a part of a device as two effects, like a command.
func (c *crash) wiped(_ string, _, _ int64, do func() error) error {
	if err := c.effect(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return c.effect()
}

// on counts the changes of a machine as effects.
func (c *crash) on(host *lvmtest.Host) {
	host.Disturb(func(h *lvmtest.Host) { h.Around, h.Wiping, h.Copying = c.around, c.wiped, c.wiped })
}

// endless returns a crash that never ends its process.
func endless() *crash { return &crash{at: -1} }

// deletion is the life of a volume that holds a secret, and the answers that its user got so far.
type deletion struct {
	t    *testing.T
	host *lvmtest.Host
	p    *lvm.Provisioner
	// made and deleted say that Create and Delete succeeded, and ended that the room was free
	// again. unwanted is set once the user began to delete the volume.
	made, deleted, ended, unwanted bool
}

// live goes on with the life until its end, or until the process ends.
func (s *deletion) live(c *crash) {
	if !s.unwanted {
		v, err := s.p.Create(s.t.Context(), request("pvc-1", 3))
		if err != nil {
			return
		}
		s.made = true
		for at := int64(0); at < v.Size; at += unit {
			s.host.WriteAt(v.Content.Source, secret, at+4096)
		}
	}
	s.unwanted = true
	if err := s.p.Delete(s.t.Context(), "pvc-1"); err != nil {
		return
	}
	s.deleted = true
	eventually(s.t, func() bool {
		if c.dead() {
			return true
		}
		pools, err := s.p.Report(s.t.Context())
		s.ended = err == nil && len(pools[0].Wiping) == 0 && pools[0].Free == pools[0].Total
		return s.ended
	}, "the room does not become free")
}

// check compares the volume after a crash with the answers before it.
func (s *deletion) check() {
	s.t.Helper()
	v, err := s.p.Get(s.t.Context(), "pvc-1")
	switch {
	case err != nil && !errors.Is(err, provision.ErrNotFound):
		s.t.Errorf("looking for the volume: %v", err)
	case s.deleted && err == nil:
		s.t.Errorf("a volume that was deleted is there: %+v", v)
	case s.made && !s.unwanted && err != nil:
		s.t.Errorf("a volume that was made: %v", err)
	}
	for at := int64(0); s.made && err == nil && at < v.Size; at += unit {
		if got := s.host.ReadAt(v.Content.Source, len(secret), at+4096); got != secret {
			s.t.Errorf("a volume that is there holds %q", got)
		}
	}
	if pool := poolOf(s.t, s.p, vg); pool.Foreign != 0 || pool.Problem != "" {
		s.t.Errorf("reported %+v", pool)
	}
}

// A process that ends at any effect, with the machine or alone, leaves a group from which
// the next one goes on. No answer is forgotten, and no room is lost. A later volume in the same
// room shows no byte of the deleted one.
func TestAProcessMayEndAtAnyEffectOfADeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, reboot := range []bool{false, true} {
			for at := 1; ; at++ {
				host := lvmtest.NewHost(map[string]int64{vg.Name: 10})
				_, config := counted(host)
				config.WipeStep, config.WipeRecord = unit, unit
				c := &crash{at: at}
				c.on(host)
				p, stop := start(t, config)
				s := &deletion{t: t, host: host, p: p}
				s.live(c)
				before := *s
				stop()
				next := endless()
				next.on(host)
				if reboot {
					host.Edit(func(groups map[string]*lvmtest.Group) string {
						for _, v := range groups[vg.Name].Volumes {
							v.Active = false
						}
						return ""
					})
				}
				s.p, stop = start(t, config)
				s.check()
				s.live(next)
				v, err := s.p.Create(t.Context(), request("pvc-2", 10))
				if !s.ended || err != nil || shows(host, v) {
					t.Fatalf("a crash at effect %d, with a reboot %v, told %+v: %v, %v", at, reboot, before, s, err)
				}
				stop()
				if t.Failed() {
					t.Fatalf("crashed at effect %d, with a reboot %v", at, reboot)
				}
				if before.ended {
					t.Logf("%d effects", at)
					break
				}
			}
		}
	})
}
