package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/guest/wire"
	"berth.dev/berth/lab/internal/process"
)

// start serves sessions in this process and returns a machine that reaches
// them: the real client, without a virtual machine in between.
func start(t *testing.T, s *server, token string) *guest.Machine {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.serve(context.WithoutCancel(t.Context()), listener) }()
	t.Cleanup(func() { listener.Close(); <-served })
	record, err := json.Marshal(map[string]any{
		"spec":     guest.Spec{Name: "guest"},
		"plan":     wire.Plan{Token: token},
		"process":  self(t),
		"execPort": listener.Addr().(*net.TCPAddr).Port,
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "machine.json"), record, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := guest.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func self(t *testing.T) process.Record {
	t.Helper()
	all, err := process.InNamespace("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.PID == os.Getpid() {
			return r
		}
	}
	t.Fatal("this process is not among those of its namespace")
	return process.Record{}
}

const token = "0123456789abcdef"

func machine(t *testing.T) *guest.Machine { return start(t, &server{token: token}, token) }

func TestExecPassesInputOutputAndExitCode(t *testing.T) {
	for name, tc := range map[string]struct {
		request        guest.ExecRequest
		code           int
		stdout, stderr string
	}{
		"output and errors stay apart": {request: shell("echo out; echo err >&2"), stdout: "out\n", stderr: "err\n"},
		"exit code":                    {request: shell("exit 42"), code: 42},
		"signal":                       {request: shell("kill -TERM $$"), code: 128 + int(syscall.SIGTERM)},
		"program not found":            {request: guest.ExecRequest{Argv: []string{"/no/such/program"}}, code: 127, stderr: "lab: fork/exec /no/such/program: no such file or directory\n"},
		"not a program":                {request: guest.ExecRequest{Argv: []string{"/"}}, code: 126, stderr: "lab: exec: \"/\": is a directory\n"},
		"input to its end":             {request: withInput(shell("cat"), "typed"), stdout: "typed"},
		"no input is empty input":      {request: shell("wc -c"), stdout: "0\n"},
		"input nobody reads":           {request: withInput(shell("echo done"), strings.Repeat("x", 1<<20)), stdout: "done\n"},
		"variable":                     {request: withEnv(shell("echo $LAB_TEST"), "LAB_TEST=yes"), stdout: "yes\n"},
		"directory":                    {request: inDir(shell("pwd"), "/usr"), stdout: "/usr\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // sessions do not wait for each other
			var stdout, stderr bytes.Buffer
			tc.request.Stdout, tc.request.Stderr = &stdout, &stderr
			if tc.request.Dir == "" {
				tc.request.Dir = "/"
			}
			code, err := machine(t).Exec(t.Context(), tc.request)
			if err != nil {
				t.Fatal(err)
			}
			if code != tc.code || stdout.String() != tc.stdout || stderr.String() != tc.stderr {
				t.Errorf("got code %d, output %q, errors %q; want %d, %q, %q",
					code, stdout.String(), stderr.String(), tc.code, tc.stdout, tc.stderr)
			}
		})
	}
}

func shell(script string) guest.ExecRequest {
	return guest.ExecRequest{Argv: []string{"/bin/sh", "-c", script}}
}

func withInput(r guest.ExecRequest, text string) guest.ExecRequest {
	r.Stdin = strings.NewReader(text)
	return r
}

func withEnv(r guest.ExecRequest, env ...string) guest.ExecRequest { r.Env = env; return r }

func inDir(r guest.ExecRequest, dir string) guest.ExecRequest { r.Dir = dir; return r }

func TestOutputOfManyFramesArrivesWhole(t *testing.T) {
	var stdout bytes.Buffer
	r := inDir(shell("head -c 5000000 /dev/zero"), "/")
	r.Stdout = &stdout
	if code, err := machine(t).Exec(t.Context(), r); err != nil || code != 0 {
		t.Fatalf("code %d, %v", code, err)
	}
	if stdout.Len() != 5_000_000 {
		t.Errorf("%d bytes arrived", stdout.Len())
	}
}

// firstLine passes on the first line written to it.
type firstLine struct {
	once sync.Once
	line chan string
}

func (w *firstLine) Write(p []byte) (int, error) {
	w.once.Do(func() { w.line <- strings.TrimSpace(string(p)) })
	return len(p), nil
}

func TestCancelledClientKillsTheProgramAndItsChildren(t *testing.T) {
	for name, input := range map[string]string{"without input": "", "with input nobody reads": strings.Repeat("x", 1<<20)} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &firstLine{line: make(chan string, 1)}
			r := withInput(inDir(shell("sleep 1000 & echo $!; wait"), "/"), input)
			r.Stdout = out
			m, ended := machine(t), make(chan error, 1)
			go func() { _, err := m.Exec(ctx, r); ended <- err }()
			child, err := strconv.Atoi(<-out.line)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("exec ended with %v", err)
			}
			waitGone(t, child)
		})
	}
}

// waitGone waits until a process has ended; the test's own time limit bounds it.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("process %d still runs", pid)
		}
	}
}

func TestDaemonLeftBehindDoesNotHoldTheSessionAndLivesOn(t *testing.T) {
	var stdout bytes.Buffer
	r := inDir(shell("sleep 1000 & echo $!"), "/")
	r.Stdout = &stdout
	if code, err := machine(t).Exec(t.Context(), r); err != nil || code != 0 {
		t.Fatalf("code %d, %v", code, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon did not live on: %v", err)
	}
}

func TestTerminalIsOneStreamWithItsSize(t *testing.T) {
	var stdout bytes.Buffer
	sizes := make(chan wire.Window, 1) // stays open: the size may change
	sizes <- wire.Window{Rows: 33, Columns: 99}
	r := inDir(shell("stty size; echo err >&2; test -t 0 && exit 5"), "/")
	r.Stdout, r.Terminal = &stdout, sizes
	code, err := machine(t).Exec(t.Context(), r)
	if err != nil || code != 5 {
		t.Fatalf("code %d, %v", code, err)
	}
	if want := "33 99\r\nerr\r\n"; stdout.String() != want {
		t.Errorf("got %q, want %q", stdout.String(), want)
	}
}

func TestWrongTokenRunsNothing(t *testing.T) {
	proof := filepath.Join(t.TempDir(), "ran")
	m := start(t, &server{token: token}, "another token, wrong")
	_, err := m.Exec(t.Context(), guest.ExecRequest{Argv: []string{"/usr/bin/touch", proof}, Dir: "/"})
	if !errors.Is(err, guest.ErrNotReady) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("the program ran")
	}
}

func TestTetheredGuestPowersOffWhenItsFirstSessionEnds(t *testing.T) {
	off := make(chan struct{})
	s := &server{token: token, onTetherLost: sync.OnceFunc(func() { close(off) }), tetherTimer: time.NewTimer(time.Hour)}
	m := start(t, s, token)
	if code, err := m.Exec(t.Context(), inDir(shell("true"), "/")); err != nil || code != 0 {
		t.Fatalf("code %d, %v", code, err)
	}
	<-off
}
