package owner_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/provision"
)

// sentry is a guard that notes what it is told.
type sentry struct {
	status keep.Status
	opened guard.Epoch
	closed guard.Epoch
	refuse error
}

func (s *sentry) Open(_ context.Context, e guard.Epoch) (string, error) {
	s.opened = e
	return "no watchdog", s.refuse
}
func (s *sentry) Close(_ context.Context, e guard.Epoch) error { s.closed = e; return s.refuse }
func (s *sentry) Closed(context.Context) error                 { return s.refuse }
func (s *sentry) Status(context.Context) (keep.Status, error)  { return s.status, s.refuse }

func TestANodeTellsItsGuardOfAnEpochByTheKernelsNameOfTheDevice(t *testing.T) {
	s, warned, e := &sentry{}, "", lineage.Epoch{Number: 2, ID: "two"}
	n := &owner.Node{
		Guard:   s,
		Holding: func(provision.Content) (guard.Holding, error) { return guard.Holding{Device: "8:16", Block: true}, nil },
		Warn:    func(_, warning string) { warned = warning },
	}
	must(t, n.OpenEpoch(t.Context(), theVolume, e, theDiskContent, true))
	if want := (guard.Epoch{Volume: theVolume, Epoch: e, Holding: guard.Holding{Device: "8:16", Block: true}, Reserved: true}); s.opened != want || warned == "" {
		t.Errorf("the guard knows %+v, warned %q", s.opened, warned)
	}
	must(t, n.CloseEpoch(t.Context(), theVolume, e))
	if s.closed.Volume != theVolume || s.closed.Epoch != e {
		t.Errorf("the guard closed %+v", s.closed)
	}
	gone := errors.New("no such device")
	n.Holding = func(provision.Content) (guard.Holding, error) { return guard.Holding{}, gone }
	is(t, n.OpenEpoch(t.Context(), theVolume, e, theDiskContent, true), gone)
}

func TestANodeWhoseGuardOrTaintsCannotBeReadHasNoStanding(t *testing.T) {
	broken := errors.New("no answer")
	s := &sentry{status: keep.Status{Fenced: true, SinceRenewal: time.Minute}}
	n := &owner.Node{Guard: s, OutOfService: func(context.Context) (bool, error) { return true, nil }}
	if got, err := n.Standing(t.Context()); err != nil || got != (owner.Standing{SinceRenewal: time.Minute, Fenced: true, OutOfService: true}) {
		t.Errorf("stands %+v, %v", got, err)
	}
	n.OutOfService = func(context.Context) (bool, error) { return false, broken }
	if _, err := n.Standing(t.Context()); !errors.Is(err, broken) {
		t.Errorf("without the taints: %v", err)
	}
	s.refuse = broken
	if _, err := n.Standing(t.Context()); !errors.Is(err, broken) {
		t.Errorf("without the guard: %v", err)
	}
}

func TestAPathThatAnAgentEmptiesByItselfIsCovered(t *testing.T) {
	m := memory.New(nil)
	path, busy := filepath.Join(t.TempDir(), "pod"), errors.New("the kernel refuses")
	var covered []string
	var told error
	n := &owner.Node{Mounter: m, Cover: func(path string) error { covered = append(covered, path); return nil }, Uncovered: func(err error) { told = err }}
	must(t, n.Unmount(t.Context(), path))
	if !slices.Equal(covered, []string{path}) || told != nil {
		t.Errorf("covered %v: %v", covered, told)
	}
	is(t, n.Unmount(t.Context(), "nowhere"), provision.ErrInvalid)
	if len(covered) > 1 {
		t.Error("a path is covered from which nothing was taken")
	}
	n.Cover = func(string) error { return busy }
	must(t, n.Unmount(t.Context(), path)) // the volume is off it
	if !errors.Is(told, busy) {
		t.Errorf("told %v", told)
	}
}

func TestARecordThatWasNotReadIsNotWritten(t *testing.T) {
	is(t, (&owner.Node{}).Replace(t.Context(), &v1alpha1.Volume{}), provision.ErrInvalid)
}

func TestADeviceThatTheKernelDoesNotHaveIsMountedNowhere(t *testing.T) {
	n := &owner.Node{MountTable: func(provision.Volume) ([]string, error) { return nil, provision.ErrNotFound }}
	if paths, err := n.Mounts(theDiskContent); err != nil || len(paths) > 0 {
		t.Errorf("%v, %v", paths, err)
	}
	if _, err := n.Mounts(provision.Content{Source: "/dev/x"}); err == nil {
		t.Error("a device of unknown identity is mounted nowhere")
	}
}
