package attacher_test

import (
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/conformance"
	"berth.dev/berth/internal/provision/shared/simcloud"
)

func TestTheDisksOfACloudConform(t *testing.T) {
	for name, settle := range map[string]func(s *site){
		"by one controller":                          (*site).settle,
		"by controllers that die before each effect": func(s *site) { s.settleDying(false) },
		"by controllers that die after each effect":  func(s *site) { s.settleDying(true) },
		"with listings that are a minute old":        func(s *site) { s.cloud.Faults().Delay(time.Minute); s.settle() },
		"by a cloud that loses the answer to its first call": func(s *site) {
			lost := false
			s.cloud.Faults().Fail(func(_, _ string, done bool) error {
				if !done || lost {
					return nil
				}
				lost = true
				return errDied
			})
			s.settle()
		},
		"by a cloud that is throttled": func(s *site) { s.cloud.Faults().Throttle(30 * time.Second); s.settle() },
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T) *conformance.World {
				s := newSite(t, simcloud.Config{Appear: 3 * time.Second}, "a", "b", "c")
				return s.world(s.disk("shared", 2), func() { settle(s); s.clock.Step(3 * time.Second) })
			})
		})
	}
}

// world plays the nodes of the suite on a disk of the cloud. Each call is made by a new agent.
func (s *site) world(d shared.Disk, settled func()) *conformance.World {
	target, _ := s.cloud.Disk(d.Handle)
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return &conformance.World{
		Disk:    d,
		Node:    func(n string) shared.Disks { return s.node(n) },
		Settled: settled, Unattended: func() { s.clock.Step(time.Hour) },
		Open: func(n string) conformance.Device {
			dev, err := s.cloud.Open(n, d.Handle, lineage.Epoch{})
			must(err)
			return conformance.Device{Write: dev.Write, Buffer: dev.Buffer, Close: dev.Close}
		},
		WriteBack: func(n string) error { return s.cloud.Kernel(n, d.Handle).WriteBack() },
		Relogin:   func(n string) { must(target.Relogin(n)) },
		Restart:   func() { must(target.Restart()) },
		Written: func() (out []string) {
			log, err := target.Log()
			must(err)
			for _, w := range log {
				out = append(out, w.Data)
			}
			return out
		},
		Misplace: func() { must(target.Replace("wwn:2")) },
	}
}
