package process_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/process"
)

func TestAMissingProgramNamesItsDebianPackage(t *testing.T) {
	t.Setenv("PATH", "")
	err := process.Run(t.Context(), process.Command{Path: "tgtd-is-not-here"})
	missing, ok := errors.AsType[*process.MissingError](err)
	if !ok || missing.Program != "tgtd-is-not-here" {
		t.Fatalf("error is %v, want a MissingError", err)
	}
	known := (&process.MissingError{Program: "tgtd", Package: "tgt"}).Error()
	if !strings.Contains(known, "apt-get install tgt") {
		t.Errorf("message %q does not say how to install it", known)
	}
}

func TestAFailureCarriesExitCodeAndStandardError(t *testing.T) {
	err := process.Run(t.Context(), process.Command{Path: "ls", Args: []string{"/no/such/file"}})
	exit, ok := errors.AsType[*process.ExitError](err)
	if !ok || exit.Code != 2 || !strings.Contains(exit.Stderr, "/no/such/file") {
		t.Errorf("error is %#v, want exit code 2 and the message of ls", err)
	}
}

func TestOutputReturnsStandardOutputAlone(t *testing.T) {
	out, err := process.Output(t.Context(), process.Command{Path: "cat", Stdin: strings.NewReader("hello")})
	if err != nil || string(out) != "hello" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestACancelledContextEndsTheProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := process.Run(ctx, process.Command{Path: "sleep", Args: []string{"60"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
}

func startSleep(t *testing.T) process.Record {
	t.Helper()
	log := filepath.Join(t.TempDir(), "deep", "sleep.log")
	rec, err := process.Start(t.Context(), process.Spec{Name: "sleep", Path: "sleep", Args: []string{"60"}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rec.Stop(context.WithoutCancel(t.Context()), 0) })
	return rec
}

func TestADetachedProcessIsRecordedAndStopped(t *testing.T) {
	rec := startSleep(t)
	if !rec.Alive() {
		t.Fatal("process is not alive after its start")
	}
	if err := rec.Stop(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if rec.Alive() {
		t.Error("process is alive after Stop")
	}
	if err := rec.Stop(t.Context(), time.Minute); err != nil {
		t.Errorf("stopping it again: %v", err)
	}
}

func TestADetachedProcessHoldsNoLockOfItsCaller(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	callers, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR, 0o600) // as a shell opens files: children have it too
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(callers, unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	startSleep(t)
	if err := unix.Close(callers); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("after its caller let go of the lock: %v", err)
	}
}

func TestAStoppedProcessThatIsPausedEndsToo(t *testing.T) {
	rec := startSleep(t)
	if err := rec.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := rec.Stop(t.Context(), time.Minute); err != nil || rec.Alive() {
		t.Errorf("Stop: %v, alive: %v", err, rec.Alive())
	}
}

func TestARecycledPidIsNeverTouched(t *testing.T) {
	rec := startSleep(t)
	other := rec
	other.StartTime-- // the same pid, another process
	if other.Alive() {
		t.Error("a record with another start time counts as alive")
	}
	if err := other.Signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal to it gives %v, want os.ErrProcessDone", err)
	}
	if err := other.Stop(t.Context(), 0); err != nil {
		t.Errorf("stopping it gives %v", err)
	}
	if !rec.Alive() {
		t.Error("the process that has the pid now was killed")
	}
	if (process.Record{}).Alive() {
		t.Error("the zero record counts as alive")
	}
}

func TestTheProcessesOfANamespaceAreFound(t *testing.T) {
	rec := startSleep(t)
	found, err := process.InNamespace("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(found, func(r process.Record) bool { return r.PID == rec.PID })
	if i < 0 || found[i].StartTime != rec.StartTime {
		t.Errorf("%+v is not among %d processes of its namespace", rec, len(found))
	}
	if none, err := process.InNamespace("/no/such/namespace"); err != nil || len(none) != 0 {
		t.Errorf("a namespace that does not exist has %v, %v", none, err)
	}
}
