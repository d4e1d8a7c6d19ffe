package lvm_test

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// wiped lets the overwriting of a part of a device have two effects, like a command.
func (c *crash) wiped(_ string, _, _ int64, do func() error) error {
	if err := c.effect(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return c.effect()
}

// on makes the changes of a machine effects.
func (c *crash) on(host *lvmtest.Host) {
	host.Disturb(func(h *lvmtest.Host) { h.Around, h.Wiping, h.Copying = c.around, c.wiped, c.wiped })
}

// nobody ends a process at none of its effects.
func nobody() *crash { return &crash{at: -1} }

// deletion is the life of a volume that holds a secret, and what its user was told so far.
type deletion struct {
	t    *testing.T
	host *lvmtest.Host
	p    *lvm.Provisioner
	// made and deleted were answered with success, and ended says that the room was free
	// again; unwanted is set once its user began to delete it.
	made, deleted, ended, unwanted bool
}

// live goes through the life from wherever it stands, until the process ends.
func (s *deletion) live(c *crash) {
	if !s.unwanted {
		v, err := s.p.Create(s.t.Context(), request("pvc-1", 3))
		if err != nil {
			return
		}
		s.made = true
		for at := int64(0); at < v.Size; at += unit {
			s.host.WriteAt(v.Device, secret, at+4096)
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

// check holds what is found after a crash against what was answered before it.
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
		if got := s.host.ReadAt(v.Device, len(secret), at+4096); got != secret {
			s.t.Errorf("a volume that is there holds %q", got)
		}
	}
	if pool := poolOf(s.t, s.p, vg); pool.Foreign != 0 || pool.Problem != "" {
		s.t.Errorf("reported %+v", pool)
	}
}

// A process that ends at any effect, with the machine or alone, leaves a group from which
// the next one goes on: nothing that was answered is forgotten, no room is lost, and no
// byte of the volume is in one that has its room later.
func TestAProcessMayEndAtAnyEffectOfADeletion(t *testing.T) {
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
			next := nobody()
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
}
