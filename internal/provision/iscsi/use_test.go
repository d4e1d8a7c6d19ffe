package iscsi_test

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/shared"
)

func TestADiskThatIsReachedInTwoWaysIsRefused(t *testing.T) {
	for name, second := range map[string]func(*iscsitest.Node){
		"two sessions": func(n *iscsitest.Node) {
			n.Extra = []iscsi.Session{{Name: "session2", Target: "iqn.2026-01.com.example:array", Interface: "eth1", LoggedIn: true, Host: 4}}
		},
		"two targets": func(n *iscsitest.Node) {
			n.Others = []iscsi.Unit{{Address: "5:0:0:1", Host: 5, WWID: "naa." + unitName, Path: "/dev/sdc"}}
		},
		"two targets, with a session at each": func(n *iscsitest.Node) {
			n.Extra = []iscsi.Session{{Name: "session2", Target: "iqn.2026-01.com.example:other", Interface: "default", LoggedIn: true, Host: 5,
				Units: []iscsi.Unit{{Address: "5:0:0:1", Host: 5, WWID: "naa." + unitName, Path: "/dev/sdc"}}}}
		},
		"multipath": func(n *iscsitest.Node) { n.Holders, n.Multipath = []string{"dm-0"}, "dm-0" },
	} {
		t.Run(name, func(t *testing.T) {
			f := begin(t, iscsitest.Options{}, shared.Capabilities{})
			f.attach(disk)
			second(f.node)
			v, err := f.disks.Look(t.Context(), disk)
			if !errors.Is(err, provision.ErrUnsupported) || !strings.Contains(err.Error(), "multipath") || !same(v, shared.View{}) {
				t.Errorf("%+v, %v", v, err)
			}
			if err := f.disks.Reserve(t.Context(), disk, 0, 1); !errors.Is(err, provision.ErrUnsupported) {
				t.Errorf("reserving it: %v", err)
			}
		})
	}
}

func TestADiskThatADeviceIsMadeOfIsInUse(t *testing.T) {
	for name, c := range map[string]struct {
		holders []string
		lvm     string
		says    string
	}{
		"a mapping":              {[]string{"dm-3"}, "", "dm-3 is made of /dev/sdb"},
		"a logical volume":       {[]string{"dm-3", "dm-4"}, "dm-4", "dm-4 is of LVM: deactivate its volume group"},
		"an array":               {[]string{"dm-3", "md127"}, "", "md127 is an array of md: stop it"},
		"a logical volume of it": {[]string{"md127", "dm-4"}, "dm-4", "global_filter"},
	} {
		t.Run(name, func(t *testing.T) {
			f := begin(t, iscsitest.Options{}, shared.Capabilities{})
			f.attach(disk)
			f.node.Holders, f.node.LVM = c.holders, c.lvm
			for name, err := range map[string]error{
				"register": f.disks.Register(t.Context(), disk, 1, shared.Idle), "flush": f.disks.Flush(t.Context(), disk), "detach": f.disks.Detach(t.Context(), disk),
			} {
				if !errors.Is(err, provision.ErrInUse) || !strings.Contains(err.Error(), c.says) || c.lvm == "" && strings.Contains(err.Error(), "LVM") {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func TestAPathThatIsAwayIsNotADiskThatIsDetached(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	before := f.attach(disk)
	f.target.Cut("a", true)
	if v, err := f.disks.Look(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) || !same(v, shared.View{}) {
		t.Errorf("while the path is away: %+v, %v", v, err)
	}
	f.target.Cut("a", false)
	if v, err := f.disks.Look(t.Context(), disk); err != nil || !same(v, before) {
		t.Errorf("afterwards: %+v, %v; before: %+v", v, err, before)
	}
}

func TestAFlushSucceedsOnlyIfNoWriteWasRefused(t *testing.T) {
	p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
	a := p.disks["a"]
	p.ok(a.Flush(t.Context(), disk))
	p.ok(p.takeover())
	if err := a.Flush(t.Context(), disk); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("without a write, while another node has the reservation: %v", err)
	}
	p.nodes["a"].Buffer("1")
	if err := a.Flush(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("a write that is refused: %v", err)
	}
	p.ok(a.Register(t.Context(), disk, keyA, shared.OwnMount))
	p.ok(a.Reserve(t.Context(), disk, keyB, keyA))
	if err := a.Flush(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("the same epoch, later: %v", err)
	}
	p.ok(a.Register(t.Context(), disk, keyA+1, shared.Idle))
	p.ok(a.Flush(t.Context(), disk))
}

func TestPagesThatWereDroppedFailNoLaterFlush(t *testing.T) {
	p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
	p.nodes["a"].Buffer("old")
	p.ok(p.takeover())
	p.ok(p.disks["a"].Register(t.Context(), disk, keyA+1, shared.Idle))
	p.ok(p.disks["a"].Reserve(t.Context(), disk, keyB, keyA+1))
	p.ok(p.disks["a"].Flush(t.Context(), disk))
	if log := p.target.Log(); len(log) != 0 {
		t.Errorf("the disk executed %v", log)
	}
}
