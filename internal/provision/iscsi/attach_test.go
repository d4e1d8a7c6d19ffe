package iscsi_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/provision/shared"
)

// fixture is one node and a target.
type fixture struct {
	t      *testing.T
	target *iscsitest.Target
	node   *iscsitest.Node
	disks  *iscsi.Disks
}

func begin(t *testing.T, o iscsitest.Options, promises shared.Capabilities) *fixture {
	o.Name = unitName
	f := &fixture{t: t, target: iscsitest.New(o)}
	f.node = f.target.Node("a")
	f.disks = iscsi.New(config(f.node, promises))
	return f
}

func (f *fixture) attach(d shared.Disk) shared.View {
	f.t.Helper()
	if err := f.disks.Attach(f.t.Context(), d); err != nil {
		f.t.Fatal(err)
	}
	f.disks.Wait()
	v, err := f.disks.Look(f.t.Context(), d)
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

func (f *fixture) detach() {
	f.t.Helper()
	if err := f.disks.Detach(f.t.Context(), disk); err != nil {
		f.t.Fatal(err)
	}
	if v, err := f.disks.Look(f.t.Context(), disk); err != nil || !same(v, shared.View{}) || f.node.Records() != 0 {
		f.t.Fatalf("after a detach: %+v, %v, and %d records of open-iscsi", v, err, f.node.Records())
	}
}

const updates = `iscsiadm -m node -T iqn.2026-01.com.example:array -p PORTAL -I default -o update -n node.startup -v manual
iscsiadm -m node -T iqn.2026-01.com.example:array -p PORTAL -I default -o update -n node.session.scan -v manual
iscsiadm -m node -T iqn.2026-01.com.example:array -p PORTAL -I default -o update -n node.session.timeo.replacement_timeout -v 120
iscsiadm -m node -T iqn.2026-01.com.example:array -p PORTAL -I default -o update -n node.conn[0].timeo.noop_out_interval -v 5
iscsiadm -m node -T iqn.2026-01.com.example:array -p PORTAL -I default -o update -n node.conn[0].timeo.noop_out_timeout -v 5
iscsiadm -m node -T iqn.2026-01.com.example:array -p PORTAL -I default -o update -n node.conn[0].timeo.login_timeout -v 15
iscsiadm -m node -T iqn.2026-01.com.example:array -p PORTAL -I default -o update -n node.session.initial_login_retry_max -v 1
`

const lifeAtPortal = `iscsiadm -m node -T iqn.2026-01.com.example:array -p PORTAL -I default -o new
` + updates + `iscsiadm -m node -T iqn.2026-01.com.example:array -p PORTAL -I default --login
`

const end = `iscsiadm -m session -r 1 --logout
iscsiadm -m node -T iqn.2026-01.com.example:array -I default -o delete
`

func TestTheCommandsOfALife(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	if v := f.attach(disk); v.Link != ownership.Attached {
		t.Fatalf("%+v", v)
	}
	f.detach()
	want := strings.ReplaceAll(lifeAtPortal, "PORTAL", "10.0.0.5:3260") + end
	if diff := cmp.Diff(want, f.node.Transcript()); diff != "" {
		t.Error(diff)
	}
}

func TestPortalsAreTriedInTheirOrder(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	d := disk
	d.Handle = "iscsi://10.0.0.5,[2001:db8::6]:860/iqn.2026-01.com.example:array/1"
	f.node.Exit["iscsiadm login"] = 8
	v := f.attach(d)
	if v.Link != ownership.AttachFailed || strings.Count(v.Problem, "did not answer in time") != 2 {
		t.Errorf("two portals that do not answer: %+v", v)
	}
	first, second := strings.ReplaceAll(lifeAtPortal, "PORTAL", "10.0.0.5:3260"), strings.ReplaceAll(lifeAtPortal, "PORTAL", "[2001:db8::6]:860")
	forget := "iscsiadm -m node -T iqn.2026-01.com.example:array -p PORTAL -I default -o delete\n"
	want := first + strings.ReplaceAll(forget, "PORTAL", "10.0.0.5:3260") + second + strings.ReplaceAll(forget, "PORTAL", "[2001:db8::6]:860")
	if diff := cmp.Diff(want, f.node.Transcript()); diff != "" {
		t.Error(diff)
	}
}

func TestAnExitCodeOfALoginBecomesAdvice(t *testing.T) {
	for code, want := range map[int]string{
		4: "no connection to the portal", 8: "did not answer in time", 18: "iscsid does not answer", 20: "iscsid does not run", 24: "the target refuses this node", 32: "iscsid was restarted", 5: "exit code 5",
	} {
		f := begin(t, iscsitest.Options{}, shared.Capabilities{})
		f.node.Exit["iscsiadm login"] = code
		if v := f.attach(disk); v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, want) || strings.Contains(v.Problem, "  (") {
			t.Errorf("exit code %d: %+v, want %q", code, v, want)
		}
		f.detach()
	}
}

func TestATargetThatBreaksAPromiseIsRefused(t *testing.T) {
	keeps := shared.Capabilities{Persistent: true}
	for name, c := range map[string]struct {
		o    iscsitest.Options
		p    shared.Capabilities
		d    shared.Disk
		want string
	}{
		"it forgets":             {iscsitest.Options{Forgets: true}, keeps, disk, "forgets its reservations"},
		"it has no such unit":    {iscsitest.Options{}, keeps, with(func(d *shared.Disk) { d.Handle = strings.TrimSuffix(handle, "1") + "2" }), "has no unit 2"},
		"the disk is another":    {iscsitest.Options{}, keeps, with(func(d *shared.Disk) { d.Identity = "naa.6001405000000000" }), "calls itself"},
		"its serial is another":  {iscsitest.Options{Serial: "s1"}, keeps, with(func(d *shared.Disk) { d.Identity = "serial.s2" }), "calls itself"},
		"it has no serial":       {iscsitest.Options{}, keeps, with(func(d *shared.Disk) { d.Identity = "serial." }), "calls itself"},
		"a name of another kind": {iscsitest.Options{}, keeps, with(func(d *shared.Disk) { d.Identity = "eui." + unitName }), "calls itself"},
	} {
		t.Run(name, func(t *testing.T) {
			f := begin(t, c.o, c.p)
			if v := f.attach(c.d); v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, c.want) {
				t.Errorf("%+v, want %q", v, c.want)
			}
			if err := f.disks.Detach(t.Context(), c.d); err != nil || f.node.Records() != 0 {
				t.Errorf("cleaning up: %v, %d records are left", err, f.node.Records())
			}
		})
	}
}

func with(change func(*shared.Disk)) shared.Disk {
	d := disk
	change(&d)
	return d
}

func TestADiskIsProvedByItsSerialNumberToo(t *testing.T) {
	f := begin(t, iscsitest.Options{Serial: "s1"}, shared.Capabilities{})
	if v := f.attach(with(func(d *shared.Disk) { d.Identity = "serial.s1" })); v.Link != ownership.Attached {
		t.Errorf("%+v", v)
	}
}

func TestARequestThatCanNeverBeMetIsInvalid(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	for _, d := range []shared.Disk{{Volume: "v", Handle: "iscsi://x", Identity: "naa.1"}, {Volume: "v", Handle: handle}} {
		_, looked := f.disks.Look(t.Context(), d)
		for _, err := range []error{looked, f.disks.Attach(t.Context(), d), f.disks.Register(t.Context(), d, 1, shared.Idle)} {
			if !errors.Is(err, provision.ErrInvalid) {
				t.Errorf("%+v: %v", d, err)
			}
		}
	}
	if len(f.node.Commands) != 0 {
		t.Errorf("commands were run: %v", f.node.Commands)
	}
}

func TestOtherSessionsAndUnitsAreLeftAlone(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	f.node.Extra = []iscsi.Session{{Name: "session9", Target: "iqn.2026-01.com.example:other", Interface: "default", LoggedIn: true, Host: 9,
		Units: []iscsi.Unit{{Address: "9:0:0:1", Host: 9, LUN: 1, Path: "/dev/sdz", WWID: "naa.5"}}}}
	if v, err := f.disks.Look(t.Context(), disk); err != nil || !same(v, shared.View{}) {
		t.Errorf("a unit of another target: %+v, %v", v, err)
	}
	f.node.Beside = []iscsi.Unit{{Address: "3:0:0:7", Host: 3, LUN: 7}}
	f.attach(disk)
	if err := f.disks.Detach(t.Context(), disk); err != nil {
		t.Fatal(err)
	}
	if v, err := f.disks.Look(t.Context(), disk); err != nil || !same(v, shared.View{}) || strings.Contains(f.node.Transcript(), "logout") {
		t.Errorf("%+v, %v, and the commands\n%s", v, err, f.node.Transcript())
	}
}

// A backup program uses the tape of the target, or has a session of its own in which it has attached nothing yet.
func TestASessionThatSomebodyElseMayUseStays(t *testing.T) {
	for name, use := range map[string]func(*iscsitest.Node){
		"it has a unit that is no disk": func(n *iscsitest.Node) { n.Strangers = []string{"3:0:0:0"} },
		"it is of another interface":    func(n *iscsitest.Node) { n.Interface = "backup" },
	} {
		t.Run(name, func(t *testing.T) {
			f := begin(t, iscsitest.Options{}, shared.Capabilities{})
			f.attach(disk)
			use(f.node)
			for range 2 {
				if err := f.disks.Detach(t.Context(), disk); err != nil {
					t.Fatal(err)
				}
				if v, err := f.disks.Look(t.Context(), disk); err != nil || !same(v, shared.View{}) {
					t.Errorf("after a detach: %+v, %v", v, err)
				}
			}
			if all := f.node.Transcript(); strings.Contains(all, "logout") || strings.Contains(all, "-o delete") {
				t.Errorf("the commands are\n%s", all)
			}
			if v := f.attach(disk); v.Link != ownership.Attached || strings.Count(f.node.Transcript(), "--login") != 1 {
				t.Errorf("attached again: %+v, and the commands are\n%s", v, f.node.Transcript())
			}
		})
	}
}

func TestADiskIsDetachedWhileAnotherOfItsTargetIsAttached(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	second := with(func(d *shared.Disk) { d.Handle = strings.TrimSuffix(handle, "1") + "2" })
	var v shared.View
	err := errors.New("no look")
	f.node.Scanning = func() { v, err = f.disks.Look(t.Context(), second) }
	f.attach(disk)
	if err != nil || !same(v, shared.View{}) {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestASessionThatIsThereAlreadyIsUsed(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	f.node.Exit["iscsiadm login"] = 15
	if v := f.attach(disk); v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "ended at once") {
		t.Errorf("a session that iscsiadm knows and the kernel does not: %+v", v)
	}
}

func TestATargetWithoutTheTypeOfReservationIsRefused(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	f.node.Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		if cdb[0] == codeIn && cdb[1] == 2 {
			return scsi.Result{Data: []byte{0, 8, 1, 0x80, 8, 0, 0, 0}}, nil
		}
		return execute(), nil
	}
	if v := f.attach(disk); v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "Write Exclusive") {
		t.Errorf("%+v", v)
	}
}

// A crash of the agent may leave a session without a unit.
func TestASessionThatIsLeftIsEnded(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	f.attach(disk)
	if err := f.node.Remove(iscsi.Unit{}); err != nil {
		t.Fatal(err)
	}
	f.disks = iscsi.New(config(f.node, shared.Capabilities{}))
	if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Link != ownership.AttachFailed {
		t.Errorf("%+v, %v", v, err)
	}
	f.detach()
}

// A crash of the agent before the login leaves a record, and so does a login that fails if iscsiadm then fails as well.
func TestARecordWithoutASessionIsRemoved(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	f.node.Exit["iscsiadm login"], f.node.Exit["iscsiadm delete"] = 8, 6
	if v := f.attach(disk); v.Link != ownership.AttachFailed || f.node.Records() != 1 {
		t.Errorf("%+v, and %d records", v, f.node.Records())
	}
	clear(f.node.Exit)
	f.detach()
}

func TestACommandThatHangsHoldsUpItsDiskOnly(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	f.attach(disk)
	c := config(f.node, shared.Capabilities{})
	c.Patience = time.Nanosecond
	impatient := iscsi.New(c)
	f.node.Hang = make(chan struct{})
	sent := 0
	f.node.Around = func(_ []byte, execute func() scsi.Result) (scsi.Result, error) {
		sent++
		return execute(), nil
	}
	if _, err := impatient.Look(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("a disk that does not answer: %v", err)
	}
	close(f.node.Hang)
	impatient.Wait()
	if sent > 1 {
		t.Errorf("%d commands were sent for a caller that gave up", sent)
	}
	f.node.Around = nil
	if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Link != ownership.Attached {
		t.Errorf("a disk that answers again: %+v, %v", v, err)
	}
}

func TestWhileACallIsUnderWayTheDiskTakesNoOther(t *testing.T) {
	f := begin(t, iscsitest.Options{}, shared.Capabilities{})
	f.node.Hang = make(chan struct{})
	if err := errors.Join(f.disks.Attach(t.Context(), disk), f.disks.Attach(t.Context(), disk)); err != nil {
		t.Fatal(err)
	}
	if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Link != ownership.Attaching {
		t.Errorf("%+v, %v", v, err)
	}
	if err := f.disks.Detach(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("a detach: %v", err)
	}
	close(f.node.Hang)
	f.disks.Wait()
	if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Link != ownership.Attached {
		t.Errorf("%+v, %v", v, err)
	}
}
