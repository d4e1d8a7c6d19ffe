package iscsi_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/run"
)

var errFaulty = errors.New("input/output error")

// faulty is a node on which something fails or happens, and which notes the steps that are taken.
type faulty struct {
	*iscsitest.Node
	mu sync.Mutex
	// steps are the names of the calls of the kernel, of its devices and of open-iscsi.
	steps []string
	// fault, if set, says why a step fails. at counts the steps from 0.
	fault func(at int, step string) error
	// sees, if set, changes what the kernel tells of the unit.
	sees func(*iscsi.Session, *iscsi.Unit)
	// open counts the devices that were opened and not closed.
	open int
}

// step notes a step, and returns why it fails.
func (f *faulty) step(name string) error {
	f.mu.Lock()
	at, fault := len(f.steps), f.fault
	f.steps = append(f.steps, name)
	f.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(at, name)
}

func (f *faulty) Change(c run.Command) ([]byte, error) {
	if err := f.step(c.Operation); err != nil {
		return nil, err
	}
	return f.Node.Change(c)
}

func (f *faulty) Sessions() ([]iscsi.Session, error) {
	if err := f.step("sessions"); err != nil {
		return nil, err
	}
	all, err := f.Node.Sessions()
	for i := range all {
		for j := range all[i].Units {
			if f.sees != nil {
				f.sees(&all[i], &all[i].Units[j])
			}
		}
	}
	return all, err
}

func (f *faulty) Disks() ([]iscsi.Unit, error) {
	if err := f.step("disks"); err != nil {
		return nil, err
	}
	return f.Node.Disks()
}

func (f *faulty) Scan(ctx context.Context, s iscsi.Session, lun int) error {
	return errors.Join(f.step("scan"), f.Node.Scan(ctx, s, lun))
}

func (f *faulty) Rescan(u iscsi.Unit) error { return errors.Join(f.step("rescan"), f.Node.Rescan(u)) }

func (f *faulty) Remove(u iscsi.Unit) error {
	if err := f.step("remove"); err != nil {
		return err
	}
	return f.Node.Remove(u)
}

func (f *faulty) Used(device string) (string, error) {
	if err := f.step("used"); err != nil {
		return "", err
	}
	return f.Node.Used(device)
}

func (f *faulty) Open(u iscsi.Unit, exclusively bool) (iscsi.Device, error) {
	if err := f.step("open"); err != nil {
		return nil, err
	}
	d, err := f.Node.Open(u, exclusively)
	if err == nil {
		f.opened(1)
	}
	return faultyDevice{d, f}, err
}

func (f *faulty) opened(by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open += by
}

type faultyDevice struct {
	iscsi.Device
	on *faulty
}

func (d faultyDevice) Execute(c scsi.Command, limit time.Duration) (scsi.Result, error) {
	if err := d.on.step(c.Name); err != nil {
		return scsi.Result{}, err
	}
	return d.Device.Execute(c, limit)
}

func (d faultyDevice) Sync() error {
	if err := d.on.step("sync"); err != nil {
		return err
	}
	return d.Device.Sync()
}

func (d faultyDevice) Drop() error {
	if err := d.on.step("drop"); err != nil {
		return err
	}
	return d.Device.Drop()
}

func (d faultyDevice) Close() error {
	d.on.opened(-1)
	return d.Device.Close()
}

// faults returns a fixture on a faulty node. change, if it is not nil, changes the configuration.
func faults(t *testing.T, o iscsitest.Options, change func(*iscsi.Config)) (*fixture, *faulty) {
	t.Helper()
	f := begin(t, o, shared.Capabilities{})
	on := &faulty{Node: f.node}
	c := iscsi.Config{Runner: on, Kernel: on, Used: on.Used}
	if change != nil {
		change(&c)
	}
	f.disks = iscsi.New(c)
	return f, on
}

// attached returns faults with the disk attached, and registered under a key unless the key is 0.
func attached(t *testing.T, key ownership.RawKey) (*fixture, *faulty) {
	t.Helper()
	f, on := faults(t, iscsitest.Options{}, nil)
	if v := f.attach(disk); v.Link != ownership.Attached {
		t.Fatalf("%+v", v)
	}
	if key != 0 {
		if err := f.disks.Register(t.Context(), disk, key, shared.Idle); err != nil {
			t.Fatal(err)
		}
	}
	return f, on
}

// attachNow attaches the disk, and returns why that failed.
func attachNow(t *testing.T, f *fixture, on *faulty) error {
	t.Helper()
	if err := f.disks.Attach(t.Context(), disk); err != nil {
		return err
	}
	f.disks.Wait()
	steps := len(on.steps)
	on.fault = nil // the look is no part of the attach
	v, err := f.disks.Look(t.Context(), disk)
	on.steps = on.steps[:steps]
	if v.Link == ownership.AttachFailed {
		return errors.Join(provision.ErrUnavailable, errors.New(v.Problem))
	}
	return err
}

// operations are all calls for a disk, each with what is done before it.
var operations = map[string]struct {
	key ownership.RawKey // of the session before the call
	// detached says that the disk is not attached before the call.
	detached bool
	call     func(t *testing.T, f *fixture, on *faulty) error
}{
	"attach": {0, true, attachNow},
	"look": {keyA, false, func(t *testing.T, f *fixture, _ *faulty) error {
		_, err := f.disks.Look(t.Context(), disk)
		return err
	}},
	"register an idle disk": {0, false, func(t *testing.T, f *fixture, _ *faulty) error {
		return f.disks.Register(t.Context(), disk, keyA, shared.Idle)
	}},
	"register a mounted disk": {0, false, func(t *testing.T, f *fixture, _ *faulty) error {
		return f.disks.Register(t.Context(), disk, keyA, shared.OwnMount)
	}},
	"reserve": {keyA, false, func(t *testing.T, f *fixture, _ *faulty) error {
		return f.disks.Reserve(t.Context(), disk, 0, keyA)
	}},
	"unregister": {keyA, false, func(t *testing.T, f *fixture, _ *faulty) error {
		return f.disks.Register(t.Context(), disk, 0, shared.Idle)
	}},
	"flush":  {keyA, false, func(t *testing.T, f *fixture, _ *faulty) error { return f.disks.Flush(t.Context(), disk) }},
	"detach": {keyA, false, func(t *testing.T, f *fixture, _ *faulty) error { return f.disks.Detach(t.Context(), disk) }},
}

// afterwards are the steps that are taken although the step before them failed.
var afterwards = map[string][]string{
	"iscsiadm login": {"iscsiadm delete"}, // the record of the portal does not stay
	"sync":           {"drop"},            // pages that cannot be written are to go as well
}

// Every step of every call fails once.
func TestACallEndsAtAStepThatFailsAndCanBeRepeated(t *testing.T) {
	for name, o := range operations {
		t.Run(name, func(t *testing.T) {
			for at := 0; ; at++ {
				f, on := attached(t, o.key)
				if o.detached {
					f.detach()
				}
				begun := len(on.steps)
				on.fault = func(step int, _ string) error {
					if step == begun+at {
						return errFaulty
					}
					return nil
				}
				err := o.call(t, f, on)
				taken := on.steps[begun:]
				if len(taken) <= at {
					if err != nil || at == 0 {
						t.Errorf("without a fault: %v, after %d steps", err, at)
					}
					return
				}
				on.fault = nil
				dropped := (name == "register an idle disk" || name == "unregister") && taken[at] == "sync" // the session has lost the right to write those pages
				if ended := errors.Is(err, provision.ErrUnavailable) && strings.Contains(err.Error(), errFaulty.Error()); ended == dropped {
					t.Errorf("step %d of %q fails: %v", at, taken, err)
				}
				if after := taken[at+1:]; !dropped && !slices.Equal(after, afterwards[taken[at]]) {
					t.Errorf("step %d of %q fails, and further steps follow", at, taken)
				}
				if on.open != 0 {
					t.Errorf("step %d of %q fails, and %d devices stay open", at, taken, on.open)
				}
				// Of a flush that failed, the kernel does not say again what was lost.
				lost := name == "flush" && (taken[at] == "sync" || taken[at] == "drop")
				if err := o.call(t, f, on); (err != nil) != lost {
					t.Errorf("step %d of %q fails, and then the call is repeated: %v", at, taken, err)
				}
			}
		})
	}
}
