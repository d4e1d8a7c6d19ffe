package iscsi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/provision/shared"
)

// refuses has a node's target give one answer to all commands of a kind, instead of executing them.
func refuses(n *iscsitest.Node, code, action byte, r scsi.Result) {
	n.Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		if cdb[0] == code && cdb[1] == action {
			return r, nil
		}
		return execute(), nil
	}
}

// sense returns the answer to a command that ended with a sense key.
func sense(key byte) scsi.Result {
	return scsi.Result{Status: 2, Sense: []byte{0x72, key, 0, 0, 0, 0, 0, 0}}
}

func TestAChangeThatTheTargetDidNotExecuteIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		r    scsi.Result
		want error
	}{
		"it is busy":                           {scsi.Result{Status: 8}, provision.ErrUnavailable},
		"its hardware failed":                  {sense(4), provision.ErrUnavailable},
		"it reports a new condition each time": {sense(6), provision.ErrUnavailable},
		"it does not know the command":         {sense(5), provision.ErrUnsupported},
		"it has a reservation in the way":      {scsi.Result{Status: 0x18}, provision.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := attached(t, 0)
			refuses(f.node, codeOut, 6, c.r)
			if err := f.disks.Register(t.Context(), disk, keyA, shared.Idle); !errors.Is(err, c.want) {
				t.Errorf("registering: %v, want %v", err, c.want)
			}
			f.node.Around = nil
			if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Registered != 0 {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

func TestATargetThatDoesNotSayWhatItCanDoPromisesNothing(t *testing.T) {
	f, _ := attached(t, 0)
	refuses(f.node, codeIn, 2, sense(5))
	if err := f.disks.Register(t.Context(), disk, keyA, shared.Idle); err != nil {
		t.Errorf("registering: %v", err)
	}
	f.detach()
	if v := f.attach(disk); v.Link != ownership.Attached {
		t.Errorf("attaching: %+v", v)
	}
	f.detach()
	if v := f.attach(with(func(d *shared.Disk) { d.Persistent = true })); v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "forgets its reservations") {
		t.Errorf("attaching the disk of a volume that counts on its reservations: %+v", v)
	}
}

func TestADiskThatIsNamedByItsSerialNumberIsUnavailableWhileItDoesNotAnswer(t *testing.T) {
	f, on := faults(t, iscsitest.Options{Serial: "s1"}, nil)
	d := with(func(d *shared.Disk) { d.Identity = "serial.s1" })
	f.attach(d)
	on.fault = func(_ int, step string) error {
		if step == "INQUIRY" {
			return errFaulty
		}
		return nil
	}
	if v, err := f.disks.Look(t.Context(), d); !errors.Is(err, provision.ErrUnavailable) || !errors.Is(err, errFaulty) {
		t.Errorf("%+v, %v", v, err)
	}
}

// A session that asked whether zero is its key would register itself under zero.
func TestAKeyOfZeroIsNoKeyOfTheSession(t *testing.T) {
	f, on := attached(t, 0)
	f.target.Register(0)
	before := len(on.steps)
	if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Registered != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if keys, _ := f.target.Registrations(); !slices.Equal(keys, []uint64{0}) {
		t.Errorf("after a look the registrations are %#x", keys)
	}
	if err := f.disks.Reserve(t.Context(), disk, 0, 0); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("reserving for a key of zero: %v", err)
	}
	for _, step := range on.steps[before:] {
		if strings.HasPrefix(step, "PERSISTENT RESERVE OUT") {
			t.Errorf("the steps are %q", on.steps[before:])
		}
	}
}

// A process that ends late may change the key of the session that it shares with its successor.
func TestAReservationUnderAnotherKeyThanTheExpectedOneIsNotTaken(t *testing.T) {
	f, on := attached(t, keyA)
	predecessor := iscsi.New(iscsi.Config{Runner: f.node, Kernel: f.node, Used: f.node.Used})
	changed := false
	f.node.Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		r := execute()
		if cdb[0] == codeOut && cdb[1] == 1 && !changed {
			changed = true
			return r, predecessor.Register(t.Context(), disk, keyA+1, shared.OwnMount)
		}
		return r, nil
	}
	if err := f.disks.Reserve(t.Context(), disk, 0, keyA); !errors.Is(err, provision.ErrConflict) || !changed {
		t.Errorf("reserving: %v, after the steps %q", err, on.steps)
	}
}

func TestAReservationOfTheSessionUnderAnotherKeyIsNotTheOneAskedFor(t *testing.T) {
	f, _ := attached(t, keyA)
	if err := f.disks.Reserve(t.Context(), disk, 0, keyA); err != nil {
		t.Fatal(err)
	}
	if err := f.disks.Reserve(t.Context(), disk, keyA, keyA+1); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("reserving under a key that is not registered: %v", err)
	}
}

func TestAReservationThatIsOfAnotherTypeAfterwardsIsNotTaken(t *testing.T) {
	f, _ := attached(t, keyA)
	f.node.Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		r := execute()
		if cdb[0] == codeOut && cdb[1] == 1 {
			f.target.Retype(3)
		}
		return r, nil
	}
	if err := f.disks.Reserve(t.Context(), disk, 0, keyA); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("reserving: %v", err)
	}
}

// The generation of a target to which nothing was done is zero, as is that of an answer that was not read.
func TestAnAnswerThatCannotBeReadIsNoDiskToWhichNothingWasDone(t *testing.T) {
	all := make([]byte, 13)
	for name, c := range map[string]struct {
		action byte
		data   []byte
	}{
		"keys that end too early": {0, []byte{0, 0, 0, 0, 0, 0, 0, 8}},
		"a reservation of a part": {1, append([]byte{0, 0, 0, 0, 0, 0, 0, 16}, append(all, 0x11, 0, 0)...)},
	} {
		f, _ := attached(t, 0)
		refuses(f.node, codeIn, c.action, scsi.Result{Data: c.data})
		if v, err := f.disks.Look(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// Pages and names that the kernel has from an earlier epoch must not outlast the registration.
func TestTheKernelForgetsWhatItKnowsOfADiskBeforeTheSessionRegisters(t *testing.T) {
	f, on := attached(t, 0)
	before := len(on.steps)
	if err := f.disks.Register(t.Context(), disk, keyA, shared.Idle); err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, step := range []string{"sync", "drop", "rescan", "PERSISTENT RESERVE OUT, REGISTER AND IGNORE EXISTING KEY"} {
		at := slices.Index(on.steps[before:], step)
		if at <= last {
			t.Errorf("%q is no step, or comes too early: %q", step, on.steps[before:])
		}
		last = at
	}
}
