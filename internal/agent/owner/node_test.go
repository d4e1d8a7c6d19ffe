package owner_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/kubeletdir"
)

// sentry is a guard that notes what it is told.
type sentry struct {
	status keep.Status
	opened guard.Epoch
	closed guard.Epoch
	refuse error
	quiet  bool // it has a watchdog
}

func (s *sentry) Open(_ context.Context, e guard.Epoch) (string, error) {
	s.opened = e
	if s.quiet {
		return "", s.refuse
	}
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
	n.OutOfService = func(context.Context) (bool, error) { return false, nil }
	s.refuse = broken
	if _, err := n.Standing(t.Context()); !errors.Is(err, broken) {
		t.Errorf("without the guard: %v", err)
	}
}

func TestAPodHasLostItsVolumeOnceItHasBegunUntilItIsUnpublished(t *testing.T) {
	dir, refused := t.TempDir(), errors.New("no answer")
	path := func(uid string) string {
		return filepath.Join(dir, "pods", uid, "volumes/kubernetes.io~csi/data/mount")
	}
	all := []string{path("runs"), path("waits"), path("gone")}
	pod := func(uid types.UID, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: corev1.PodStatus{Phase: phase}}
	}
	var err error
	m := memory.New(nil)
	n := &owner.Node{
		Kubelet: kubeletdir.New(dir), Exists: func(path string) bool { return path != all[2] }, Mounter: m,
		Pods: func(context.Context) ([]corev1.Pod, error) {
			return []corev1.Pod{pod("runs", corev1.PodRunning), pod("waits", corev1.PodPending), pod("other", corev1.PodPending)}, err
		},
	}
	if got := n.There(all); !slices.Equal(got, all[:2]) {
		t.Errorf("there are %v", got)
	}
	if got, err := n.Begun(t.Context(), all); err != nil || !slices.Equal(got, []string{path("runs"), path("gone")}) {
		t.Errorf("those of %v have begun: %v", got, err)
	}
	err = refused
	_, failed := n.Begun(t.Context(), all)
	is(t, failed, refused)
	must(t, n.Uncover(t.Context(), path("waits")))
	is(t, n.Uncover(t.Context(), "nowhere"), provision.ErrInvalid)
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
	for _, unknown := range []provision.Content{{Source: "/dev/x"}, {Source: "/dev/zd0", Identity: "zvol:pool/v"}} {
		if _, err := n.Mounts(unknown); err == nil {
			t.Errorf("the device %+v, which cannot be told from others, is mounted nowhere", unknown)
		}
	}
	broken := errors.New("the mount table cannot be read")
	n.MountTable = func(provision.Volume) ([]string, error) { return nil, broken }
	_, err := n.Mounts(theDiskContent)
	is(t, err, broken)
}

func TestWhatTheGuardRefusesIsAnError(t *testing.T) {
	refused := errors.New("the guard is fenced")
	n := &owner.Node{
		Guard:   &sentry{refuse: refused, quiet: true},
		Holding: func(provision.Content) (guard.Holding, error) { return guard.Holding{}, nil },
		Warn:    func(_, warning string) { t.Errorf("warned of %q", warning) },
	}
	is(t, n.OpenEpoch(t.Context(), theVolume, lineage.Epoch{Number: 2}, theDiskContent, true), refused)
	is(t, n.CloseEpoch(t.Context(), theVolume, lineage.Epoch{Number: 2}), refused)
	is(t, n.AllClosed(t.Context()), refused)
	for reason, held := range map[ownership.Reason]bool{ownership.StillHeld: true, keep.Looking: false, keep.StillOpen: false} {
		n.Guard = &sentry{refuse: &keep.RefusedError{Reason: reason, Message: "no"}}
		err := n.CloseEpoch(t.Context(), theVolume, lineage.Epoch{Number: 2})
		var said *keep.RefusedError
		if !errors.As(err, &said) || errors.Is(err, provision.ErrInUse) != held {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestFilesystemsThatCannotBeLookedAtHaveNotShutThemselvesDown(t *testing.T) {
	n := &owner.Node{ShutDownAt: func() ([]string, error) { return []string{"/stage"}, nil }}
	if got := n.ShutDowns(); !slices.Equal(got, []string{"/stage"}) {
		t.Errorf("found %v", got)
	}
	n.ShutDownAt = func() ([]string, error) { return nil, errors.New("the mount table cannot be read") }
	if got := n.ShutDowns(); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}

func TestANodeReadsAndWritesTheRecordAtTheAPIServer(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, v1alpha1.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: theVolume}}).
		WithStatusSubresource(&v1alpha1.Volume{}).Build()
	n := &owner.Node{Live: c, Status: c}
	v, err := n.Read(t.Context(), theVolume)
	must(t, err)
	old := v.DeepCopy()
	v.Status.Ownership = &v1alpha1.Ownership{Clean: true}
	must(t, n.Replace(t.Context(), v))
	if now, err := n.Read(t.Context(), theVolume); err != nil || now.Status.Ownership == nil {
		t.Errorf("the record is %+v, %v", now.Status.Ownership, err)
	}
	if err := n.Replace(t.Context(), old); !apierrors.IsConflict(err) {
		t.Errorf("a record is written over a newer one: %v", err)
	}
	if _, err := n.Read(t.Context(), "pvc-00000000-0000-0000-0000-000000000009"); !apierrors.IsNotFound(err) {
		t.Errorf("a Volume is read that is not there: %v", err)
	}
}

// fixed is a mount that does not come off.
type fixed struct {
	mount.Mounter
	err error
}

func (f fixed) Unmount(context.Context, string) error { return f.err }

func TestAMountThatDoesNotComeOffIsAnError(t *testing.T) {
	busy := errors.New("a process has it")
	is(t, (&owner.Node{Mounter: fixed{err: busy}}).Unmount(t.Context(), "/a"), busy)
}
