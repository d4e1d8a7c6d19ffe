package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth.dev/berth/internal/run"
)

// The test binary plays the commands itself, so no shell or tool is needed.
func TestMain(m *testing.M) {
	if role := os.Getenv("RUN_TEST_ROLE"); role != "" && len(os.Args) > 1 {
		os.Exit(play(os.Args[1:]))
	}
	os.Setenv("RUN_TEST_ROLE", "command")
	os.Exit(m.Run())
}

func play(args []string) int {
	switch args[0] {
	case "echo":
		os.Stdout.WriteString(strings.Join(args[1:], "|"))
	case "locale":
		os.Stdout.WriteString(os.Getenv("LC_ALL"))
	case "fail":
		os.Stderr.WriteString(strings.Repeat("x", 10000) + "the reason")
		return 5
	case "flood":
		block := make([]byte, 1<<20)
		for range 65 {
			os.Stdout.Write(block)
		}
	case "parent":
		child, err := os.StartProcess("/proc/self/exe", []string{"child", "hang", args[1]},
			&os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
		if err != nil {
			return 1
		}
		_, _ = child.Wait()
	case "hang":
		_ = os.WriteFile(args[1]+".part", []byte(strconv.Itoa(os.Getpid())), 0o600)
		_ = os.Rename(args[1]+".part", args[1])
		for { // An empty select would be a deadlock, which ends the process.
			_ = syscall.Pause()
		}
	case "await":
		for {
			if _, err := os.Stat(args[1]); err == nil {
				os.Stdout.WriteString("finished")
				return 0
			}
		}
	}
	return 0
}

func command(args ...string) run.Command {
	return run.Command{Operation: args[0], Program: "/proc/self/exe", Args: args}
}

func TestArgumentsReachTheCommandAsTheyAre(t *testing.T) {
	out, err := run.Exec{}.Query(t.Context(), command("echo", "a b", "$HOME", ";", `"`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), `a b|$HOME|;|"`; got != want {
		t.Errorf("the command saw %q, want %q", got, want)
	}
}

func TestCommandsSpeakOneLanguage(t *testing.T) {
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	out, err := run.Exec{}.Change(command("locale"))
	if err != nil || string(out) != "C" {
		t.Errorf("LC_ALL in the command is %q, error %v, want C", out, err)
	}
}

func TestFailureCarriesTheCodeAndTheEndOfTheMessage(t *testing.T) {
	_, err := run.Exec{}.Change(command("fail"))
	exit, ok := errors.AsType[*run.ExitError](err)
	if !ok {
		t.Fatalf("got %v, want an ExitError", err)
	}
	if exit.Code != 5 || !strings.HasSuffix(exit.Stderr, "the reason") || len(exit.Stderr) > 4096 {
		t.Errorf("code %d, %d bytes of message ending in %q", exit.Code, len(exit.Stderr), exit.Stderr[len(exit.Stderr)-10:])
	}
}

func TestMissingProgramIsNoExitError(t *testing.T) {
	_, err := run.Exec{}.Change(run.Command{Operation: "nothing", Program: "/no/such/program"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want one that says the program is not there", err)
	}
}

func TestTooMuchOutputIsAnErrorAndNotHalfAReport(t *testing.T) {
	if _, err := (run.Exec{}).Query(t.Context(), command("flood")); err == nil {
		t.Error("a truncated report passed for a whole one")
	}
}

func TestQueryIsKilledWithItsChildrenWhenItsContextEnds(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := (run.Exec{}).Query(ctx, command("parent", pidFile)); !errors.Is(err, why) {
			t.Errorf("the killed query returned %v, want the cause of its context", err)
		}
	})
	pid := readPID(t, pidFile)
	cancel(why)
	wg.Wait()
	eventually(t, func() bool { return gone(pid) }, "the query's child still runs")
}

func TestObserverHearsOfEveryCommand(t *testing.T) {
	var o recorder
	e := run.Exec{Observer: &o}
	_, _ = e.Change(command("echo"))
	_, _ = e.Query(t.Context(), command("fail"))
	if len(o.seen) != 2 || o.seen[0] != "echo true" || o.seen[1] != "fail false" {
		t.Errorf("the observer heard %q", o.seen)
	}
}

type recorder struct{ seen []string }

func (r *recorder) Observe(c run.Command, d time.Duration, err error) {
	if d >= 0 {
		r.seen = append(r.seen, c.Operation+" "+strconv.FormatBool(err == nil))
	}
}

func readPID(t *testing.T, path string) int {
	t.Helper()
	var pid int
	eventually(t, func() bool {
		b, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(string(b))
		return err == nil
	}, "the command's child did not start")
	return pid
}

// gone says whether a process has ended. It is also true for one that is not reaped yet.
func gone(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ") || syscall.Kill(pid, 0) != nil
}

func eventually(t *testing.T, ok func() bool, failure string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(20 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(failure)
		}
	}
}
