//go:build lab

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/lab/internal/cluster"
)

// lab is the lab program with a cluster of the test's own.
type lab struct {
	t       *testing.T
	program string
	env     []string
	root    string
}

// newLab builds the program. It uses the user's cache: the tests do not test the build
// of Kubernetes.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, program: filepath.Join(t.TempDir(), "lab"), root: filepath.Join(t.TempDir(), "state")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", l.program, "../cmd/lab")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the lab: %v\n%s", err, out)
	}
	l.env = append(os.Environ(), "BERTH_LAB_STATE="+l.root)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if _, stderr, code := l.run(ctx, nil, "down"); code != 0 {
			t.Errorf("taking the cluster down: %s", stderr)
		}
	})
	return l
}

// in returns the lab for a subtest, so that failures count for the subtest.
func (l lab) in(t *testing.T) *lab {
	l.t = t
	return &l
}

func (l *lab) run(ctx context.Context, stdin []byte, args ...string) (stdout, stderr string, code int) {
	cmd := exec.CommandContext(ctx, l.program, append([]string{"--name", "lab-test"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = l.env, bytes.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), errs.String(), exit.ExitCode()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return out.String(), errs.String(), 0
}

// do runs a command of the lab that must succeed and returns its output.
func (l *lab) do(args ...string) string {
	l.t.Helper()
	stdout, stderr, code := l.run(l.t.Context(), nil, args...)
	if code != 0 {
		l.t.Fatalf("lab %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return strings.TrimSpace(stdout)
}

func (l *lab) status() cluster.Status {
	l.t.Helper()
	var s cluster.Status
	if err := json.Unmarshal([]byte(l.do("status", "-o", "json")), &s); err != nil {
		l.t.Fatal(err)
	}
	return s
}

func (l *lab) node(name string) cluster.NodeStatus {
	l.t.Helper()
	for _, n := range l.status().Nodes {
		if n.Name == name {
			return n
		}
	}
	l.t.Fatalf("status has no node %s", name)
	return cluster.NodeStatus{}
}

// kubectl runs kubectl, which must succeed.
func (l *lab) kubectl(args ...string) string {
	l.t.Helper()
	out, err := l.kubectlCommand(args...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (l *lab) kubectlCommand(args ...string) *exec.Cmd {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), l.do("binary", "kubectl"), args...)
	cmd.Env = append(l.env, "KUBECONFIG="+l.do("kubeconfig"))
	return cmd
}

// eventually waits until is returns true, for up to two minutes.
func (l *lab) eventually(what string, is func() bool) {
	l.t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline.C:
			l.t.Fatalf("not within two minutes: %s", what)
		case <-tick.C:
		}
	}
}

func (l *lab) ready(node string) bool { return l.node(node).Ready == "True" }
