package san

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/guest/wire"
	"berth.dev/berth/lab/internal/network"
)

// Machine is the name of the target's guest, and of its tap.
const Machine = "san"

// lioBootTimeout is generous: other guests may boot at the same time.
const lioBootTimeout = 3 * time.Minute

// MakeGuest makes the guest of an [LIO] target, without starting it.
func (s *SAN) MakeGuest(ctx context.Context, image guest.Image, tap string) error {
	_, err := guest.Create(ctx, s.guestDir(), guest.Spec{
		Name: Machine, Image: image, CPUs: 2, Memory: 512 << 20, NetNS: s.netns, Tap: tap,
		Seed: guest.Seed{Plan: wire.Plan{
			Network: &wire.Interface{
				MAC: network.SANMAC, Gateway: network.Gateway.String(),
				Address: fmt.Sprintf("%s/%d", network.SANAddress, network.Nodes.Bits()),
			},
			Modules: []string{"configfs", "target_core_mod", "target_core_iblock", "iscsi_target_mod"},
		}},
	})
	return err
}

// HasGuest reports whether [SAN.MakeGuest] has made the guest.
func (s *SAN) HasGuest() bool {
	_, err := guest.Open(s.guestDir())
	return err == nil
}

func (s *SAN) guestDir() string { return filepath.Join(s.dir, "guest") }

// lio is the kernel's target in a guest. A logical unit is a disk of the guest, and so a
// file of this machine.
type lio struct{ *SAN }

func (l lio) power() guest.Power {
	m, err := guest.Open(l.guestDir())
	if err != nil {
		return guest.Off
	}
	return m.Power()
}

func (l lio) logs() map[string]string {
	m, err := guest.Open(l.guestDir())
	if err != nil {
		return nil
	}
	return m.Logs()
}

func (l lio) start(ctx context.Context) error {
	m, err := guest.Open(l.guestDir())
	if err != nil {
		return err
	}
	if err := m.PowerOn(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, lioBootTimeout, fmt.Errorf("not booted after %v", lioBootTimeout))
	defer cancel()
	if err := m.WaitReady(limited); err != nil {
		return err
	}
	script := []string{lioBegin(l.record.Persist)}
	for _, u := range l.LUNs() {
		if err := l.plug(ctx, m, u); err != nil {
			return err
		}
		script = append(script, lioOffer(u))
	}
	return l.run(ctx, m, strings.Join(append(script, lioEnable), ""))
}

func (l lio) stop(ctx context.Context) error {
	m, err := guest.Open(l.guestDir())
	if errors.Is(err, guest.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return m.PowerOff(ctx)
}

func (l lio) offer(ctx context.Context, u LUN) error {
	m, err := guest.Open(l.guestDir())
	if err != nil {
		return err
	}
	if err := l.plug(ctx, m, u); err != nil {
		return err
	}
	return l.run(ctx, m, lioOffer(u))
}

func (l lio) withdraw(ctx context.Context, u LUN) error {
	m, err := guest.Open(l.guestDir())
	if errors.Is(err, guest.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if m.Power() != guest.Off {
		if err := l.run(ctx, m, lioWithdraw(u)); err != nil {
			return err
		}
	}
	if !hasDisk(m, u) {
		return nil
	}
	return m.RemoveDisk(ctx, u.disk().Name)
}

// plug gives the guest the disk of a logical unit, unless it has it.
func (l lio) plug(ctx context.Context, m *guest.Machine, u LUN) error {
	if hasDisk(m, u) {
		return nil
	}
	return m.AttachDisk(ctx, u.disk())
}

func hasDisk(m *guest.Machine, u LUN) bool {
	return slices.ContainsFunc(m.Disks(), func(d guest.Disk) bool { return d.Name == u.disk().Name })
}

func (u LUN) disk() guest.Disk {
	return guest.Disk{Name: fmt.Sprintf("lun%d", u.Number), Size: u.Size, File: u.File}
}

func (l lio) delay(ctx context.Context, d time.Duration) error {
	m, err := guest.Open(l.guestDir())
	if err != nil {
		return err
	}
	_, err = m.Output(ctx, network.Link{Delay: d}.Command(network.Interface)...)
	return err
}

func (l lio) run(ctx context.Context, m *guest.Machine, script string) error {
	return m.Pipe(ctx, strings.NewReader(script), "sh", "-eu")
}
