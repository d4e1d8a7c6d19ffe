package iscsi_test

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/provision/shared"
)

func inState(state string) func(*iscsi.Session, *iscsi.Unit) {
	return func(_ *iscsi.Session, u *iscsi.Unit) { u.State = state }
}

func TestAUnitThatCannotBeUsedNowIsUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		sees func(*iscsi.Session, *iscsi.Unit)
		want string
	}{
		"its session is away":             {func(s *iscsi.Session, _ *iscsi.Unit) { s.LoggedIn = false }, "is away"},
		"the kernel has made no disk yet": {func(_ *iscsi.Session, u *iscsi.Unit) { u.Path, u.Number = "", "" }, "in the state running"},
		"its session is away, and the kernel has given it up": {
			func(s *iscsi.Session, u *iscsi.Unit) { s.LoggedIn, u.State = false, "offline" }, "is away",
		},
		"the kernel blocks its commands":           {inState("blocked"), "in the state blocked"},
		"its session has come back this moment":    {inState("transport-offline"), "in the state transport-offline"},
		"the kernel keeps commands of others back": {inState("quiesce"), "in the state quiesce"},
		"the kernel makes it":                      {inState("created"), "in the state created"},
		"the kernel removes it":                    {inState("cancel"), "in the state cancel"},
		"the kernel has removed it":                {inState("deleted"), "in the state deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			f, on := attached(t, 0)
			on.sees = c.sees
			before := len(on.steps)
			if v, err := f.disks.Look(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v; want %q", v, err, c.want)
			}
			if count(on.steps[before:], "open") > 0 {
				t.Error("it was opened")
			}
		})
	}
}

// Such a unit stays so when its target is well again. Only a unit that is found anew is of use.
func TestAUnitThatTheKernelHasGivenUpIsAttachedAnew(t *testing.T) {
	f, on := attached(t, 0)
	on.sees = inState("offline")
	look := func() shared.View {
		t.Helper()
		v, err := f.disks.Look(t.Context(), disk)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := look(); v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "given unit 3:0:0:1 up (offline)") {
		t.Errorf("%+v", v)
	}
	closes := f.node.Holds()
	if err := f.disks.Detach(t.Context(), disk); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("detaching it while it is mounted: %v", err)
	}
	if v := look(); v.Link != ownership.AttachFailed {
		t.Errorf("after that: %+v", v)
	}
	closes()
	if err := f.disks.Detach(t.Context(), disk); err != nil {
		t.Error(err)
	}
	on.sees = nil
	if v := f.attach(disk); v.Link != ownership.Attached {
		t.Errorf("attached anew: %+v", v)
	}
}

func TestACallForADiskThatIsNotAttachedSaysSo(t *testing.T) {
	f, _ := faults(t, iscsitest.Options{}, nil)
	for name, err := range map[string]error{
		"register": f.disks.Register(t.Context(), disk, 1, shared.Idle), "reserve": f.disks.Reserve(t.Context(), disk, 0, 1),
		"flush": f.disks.Flush(t.Context(), disk),
	} {
		if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "not attached") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A device whose path is away may not open, and then nothing can mount it either.
func TestAUnitIsRemovedThoughItDoesNotOpenIfItsPathIsAway(t *testing.T) {
	for name, c := range map[string]struct {
		sees  func(*iscsi.Session, *iscsi.Unit)
		stays bool
	}{
		"its session is away":             {func(s *iscsi.Session, _ *iscsi.Unit) { s.LoggedIn = false }, false},
		"the kernel has given it up":      {inState("offline"), false},
		"the kernel has made no disk yet": {func(_ *iscsi.Session, u *iscsi.Unit) { u.Path, u.Number = "", "" }, false},
		"its path is there":               {func(*iscsi.Session, *iscsi.Unit) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, on := attached(t, 0)
			on.sees = c.sees
			on.fault = func(_ int, step string) error {
				if step == "open" {
					return errFaulty
				}
				return nil
			}
			if err := f.disks.Detach(t.Context(), disk); (err != nil) != c.stays {
				t.Errorf("detaching: %v", err)
			}
			on.sees, on.fault = nil, nil
			if v, err := f.disks.Look(t.Context(), disk); err != nil || (v.Link == ownership.Attached) != c.stays {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// The kernel lets one opener at a time have the device exclusively.
func TestADeviceThatTheKernelSaysIsClaimedIsInUse(t *testing.T) {
	f, on := attached(t, 0)
	on.fault = func(_ int, step string) error {
		if step == "open" {
			return iscsi.ErrBusy
		}
		return nil
	}
	for name, err := range map[string]error{
		"register": f.disks.Register(t.Context(), disk, 1, shared.Idle), "flush": f.disks.Flush(t.Context(), disk), "detach": f.disks.Detach(t.Context(), disk),
	} {
		if !errors.Is(err, provision.ErrInUse) || !strings.Contains(err.Error(), "mounted") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADeviceWithoutANumberIsNotLookedForAmongTheOpenOnes(t *testing.T) {
	f, on := attached(t, 0)
	on.sees = func(_ *iscsi.Session, u *iscsi.Unit) { u.Number = "" }
	before := len(on.steps)
	if err := f.disks.Flush(t.Context(), disk); err != nil {
		t.Error(err)
	}
	if count(on.steps[before:], "used") > 0 {
		t.Errorf("the steps are %q", on.steps[before:])
	}
}

func TestTwoDisksWithoutANameAreNotOneDisk(t *testing.T) {
	f, on := attached(t, 0)
	on.sees = func(_ *iscsi.Session, u *iscsi.Unit) { u.WWID = "" }
	f.node.Others = []iscsi.Unit{{Address: "5:0:0:1", Host: 5, Path: "/dev/sdc"}, {Address: "5:0:0:2", Host: 5, WWID: "naa.5", Path: "/dev/sdd"}}
	if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Link != ownership.Attached {
		t.Errorf("%+v, %v", v, err)
	}
	on.sees = nil
	if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Link != ownership.Attached {
		t.Errorf("beside disks of other names: %+v, %v", v, err)
	}
}

// One kernel can play several nodes, of which each has a record of open-iscsi.
func TestSessionsOfOtherRecordsAreThoseOfOtherNodes(t *testing.T) {
	f, on := faults(t, iscsitest.Options{}, func(c *iscsi.Config) { c.Interface = "default" })
	other := iscsi.Unit{Address: "4:0:0:1", Host: 4, LUN: 1, State: "running", WWID: "naa." + unitName, Path: "/dev/sdc", Number: "8:32"}
	f.node.Extra = []iscsi.Session{{Name: "session2", Target: "iqn.2026-01.com.example:array", Interface: "eth1", LoggedIn: true, Host: 4, Units: []iscsi.Unit{other}}}
	if v := f.attach(disk); v.Link != ownership.Attached || v.Content.Source != "/dev/sdb" {
		t.Errorf("%+v", v)
	}
	sessions := 0
	on.fault = func(_ int, step string) error {
		if step != "sessions" {
			return nil
		}
		if sessions++; sessions == 2 { // the second reading is for the other nodes
			return errFaulty
		}
		return nil
	}
	if v, err := f.disks.Look(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("while the sessions cannot be read: %+v, %v", v, err)
	}
	f.node.Others = []iscsi.Unit{{Address: "5:0:0:1", Host: 5, WWID: "naa." + unitName, Path: "/dev/sdd"}}
	if v, err := f.disks.Look(t.Context(), disk); !errors.Is(err, provision.ErrUnsupported) {
		t.Errorf("beside a disk of no session: %+v, %v", v, err)
	}
}

func TestAnOtherwiseNamedRecordOfOpenISCSIIsUsed(t *testing.T) {
	f, _ := faults(t, iscsitest.Options{}, func(c *iscsi.Config) { c.Interface = "eth1" })
	f.attach(disk) // the played session is of another record
	if all := f.node.Transcript(); !strings.Contains(all, "-I eth1") || strings.Contains(all, "-I default") {
		t.Errorf("the commands are\n%s", all)
	}
}

func TestAUnitThatDoesNotSayWhichDiskItIsIsNotUsed(t *testing.T) {
	for name, identity := range map[string]provision.Identity{"by its name": disk.Identity, "by its serial number": "serial.s1"} {
		t.Run(name, func(t *testing.T) {
			f := begin(t, iscsitest.Options{Serial: "s1"}, shared.Capabilities{})
			f.node.Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
				if cdb[0] == 0x12 {
					return scsi.Result{Data: []byte{0, cdb[2]}}, nil
				}
				return execute(), nil
			}
			v := f.attach(with(func(d *shared.Disk) { d.Identity = identity }))
			if v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "does not say which disk it is") {
				t.Errorf("%+v", v)
			}
		})
	}
}

// The session has the unit of the other disk.
func TestADetachOfADiskThatIsNotAttachedLeavesTheSessionOfAnother(t *testing.T) {
	f, _ := attached(t, 0)
	if err := f.disks.Detach(t.Context(), second); err != nil {
		t.Error(err)
	}
	if strings.Contains(f.node.Transcript(), "logout") {
		t.Errorf("the commands are\n%s", f.node.Transcript())
	}
}

func TestADetachThatTheKernelDoesNotCarryOutDoesNotEndTheSession(t *testing.T) {
	f, _ := attached(t, 0)
	f.node.Beside = []iscsi.Unit{{Address: "3:0:0:1", Host: 3, LUN: 1, State: "running"}} // it stays
	if err := f.disks.Detach(t.Context(), disk); err != nil {
		t.Error(err)
	}
	if strings.Contains(f.node.Transcript(), "logout") {
		t.Errorf("the commands are\n%s", f.node.Transcript())
	}
}
