//go:build lab

package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/lab/internal/cluster"
)

func TestNative(t *testing.T) {
	l := newLab(t)
	_, busybox, _ := strings.Cut(l.do("images", "localhost/busybox:1"), " ")
	loops := loopDevices(t)
	l.do("up", "--native", "--nodes", "2", "--disks", "1", "--disk-size", "1G", "--image", busybox)
	up := l.status()

	t.Run("the nodes are Ready and their disks empty", func(t *testing.T) { testFresh(t, l.in(t), up) })
	t.Run("a second up changes nothing", func(t *testing.T) { testSecondUp(t, l.in(t), up) })
	t.Run("commands on a node are passed through", func(t *testing.T) { testExec(t, l.in(t)) })
	t.Run("images are there from the start or loaded", func(t *testing.T) { testLoad(t, l.in(t)) })
	t.Run("pods run and reach each other and the API server", func(t *testing.T) { testPods(t, l.in(t)) })
	t.Run("pods find each other by name and through Services", func(t *testing.T) { testServices(t, l.in(t)) })
	t.Run("the machine's kernel parameters stay", func(t *testing.T) { testParameters(t, l.in(t)) })
	t.Run("a disconnected node is lost and comes back", func(t *testing.T) { testLoss(t, l.in(t), "cut", "heal") })
	t.Run("a node that crashed is lost and comes back", func(t *testing.T) { testCrash(t, l.in(t)) })
	t.Run("a paused node is lost and comes back", func(t *testing.T) { testLoss(t, l.in(t), "pause", "resume") })
	t.Run("a node loses the API server alone", func(t *testing.T) { testLoss(t, l.in(t), "cut --from=api", "heal") })
	t.Run("a paused node is powered off and on", func(t *testing.T) { testPausedOff(t, l.in(t)) })
	t.Run("a target serves, restarts and goes", func(t *testing.T) { testSAN(t, l.in(t)) })
	t.Run("what needs a kernel of its own is refused", func(t *testing.T) { testRefusals(t, l.in(t)) })

	before := l.status()
	l.do("down")
	t.Run("nothing is left behind", func(t *testing.T) { testNothingLeft(t, l.in(t), before) })
	t.Run("nothing native is left behind", func(t *testing.T) { testNothingNativeLeft(t, loops) })
}

// TestNativeInterrupted kills the command that starts a cluster, at different moments.
func TestNativeInterrupted(t *testing.T) {
	for _, after := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond, time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			l := newLab(t)
			loops := loopDevices(t)
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			cmd := exec.CommandContext(ctx, l.program, "--name", "lab-test", "up", "--native", "--nodes", "2", "--disks", "1", "--disk-size", "1G")
			cmd.Env = l.env
			if err := cmd.Run(); err == nil {
				t.Logf("the cluster was up already after %v", after)
			}
			l.do("down")
			testNothingLeft(t, l, cluster.Status{})
			testNothingNativeLeft(t, loops)
		})
	}
}

func testPausedOff(t *testing.T, l *lab) {
	l.do("pause", "node2")
	if n := l.node("node2"); n.Power != "paused" {
		t.Errorf("a paused node is %s", n.Power)
	}
	l.do("power", "off", "node2")
	if n := l.node("node2"); n.Power != "off" {
		t.Errorf("node2 is %s after power off", n.Power)
	}
	l.do("power", "on", "node2")
	l.eventually("node2 is Ready", func() bool { return l.ready("node2") })
}

func testSAN(t *testing.T, l *lab) {
	first := strings.Fields(l.do("san", "up", "--size", "64M"))
	added := strings.Fields(l.do("san", "add", "--size", "32M"))
	l.do("san", "restart")
	s := l.status().SAN
	if s == nil || s.Power != "on" || len(s.LUNs) != 2 || s.LUNs[0].File != first[1] || s.LUNs[1].File != added[1] {
		t.Fatalf("the SAN is %+v, units %v and %v were made", s, first, added)
	}
	l.do("san", "remove", added[0])
	l.do("san", "off")
	if s := l.status().SAN; s.Power != "off" || len(s.LUNs) != 1 {
		t.Errorf("the SAN is %+v, want it off, with one unit", s)
	}
	if _, stderr, code := l.run(t.Context(), nil, "san", "up", "--kind", "lio"); code == 0 || !strings.Contains(stderr, "lab san down") {
		t.Errorf("a SAN of another kind: exit code %d, %q", code, stderr)
	}
	l.do("san", "on")
	l.do("san", "down")
	if s := l.status().SAN; s != nil {
		t.Errorf("a SAN is left: %+v", s)
	}
}

func testParameters(t *testing.T, l *lab) {
	name := "/proc/sys/kernel/panic_on_oops"
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	l.do("exec", "node1", "--", "sh", "-c", "echo 7 > "+name)
	if after, err := os.ReadFile(name); err != nil || string(after) != string(before) {
		t.Errorf("%s is %q (%v), was %q", name, after, err, before)
	}
}

func testRefusals(t *testing.T, l *lab) {
	for _, args := range [][]string{{"pause", "--freeze-clock", "node1"}, {"disk", "add", "node1"}} {
		if _, stderr, code := l.run(t.Context(), nil, args...); code == 0 || !strings.Contains(stderr, "native") {
			t.Errorf("lab %s: exit code %d, %q; want why not", strings.Join(args, " "), code, stderr)
		}
	}
}

func loopDevices(t *testing.T) int {
	t.Helper()
	bound, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	return len(bound)
}

func testNothingNativeLeft(t *testing.T, loops int) {
	if got := loopDevices(t); got != loops {
		t.Errorf("%d loop devices are in use, were %d", got, loops)
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*/berth-lab-lab-test*", "/sys/fs/cgroup/berth-lab-lab-test*"} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("cgroups are left: %v (%v)", left, err)
		}
	}
}
