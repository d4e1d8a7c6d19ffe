//go:build lab

package test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/cluster"
)

func TestLab(t *testing.T) {
	l := newLab(t)
	_, busybox, _ := strings.Cut(l.do("images", "localhost/busybox:1"), " ")
	l.do("up", "--nodes", "2", "--disks", "1", "--disk-size", "1G", "--control", "--image", busybox)
	up := l.status()

	t.Run("the nodes are Ready and their disks empty", func(t *testing.T) { testFresh(t, l.in(t), up) })
	t.Run("the control node is this machine and keeps pods off", func(t *testing.T) { testControl(t, l.in(t), up) })
	t.Run("a second up changes nothing", func(t *testing.T) { testSecondUp(t, l.in(t), up) })
	t.Run("commands on a node are passed through", func(t *testing.T) { testExec(t, l.in(t)) })
	t.Run("images are there from the start or loaded", func(t *testing.T) { testLoad(t, l.in(t)) })
	t.Run("pods run and reach each other and the API server", func(t *testing.T) { testPods(t, l.in(t)) })
	t.Run("pods find each other by name and through Services", func(t *testing.T) { testServices(t, l.in(t)) })
	t.Run("a disk comes and goes", func(t *testing.T) { testDisk(t, l.in(t)) })
	t.Run("two nodes share a disk", func(t *testing.T) { testSharedDisk(t, l.in(t)) })
	t.Run("faults of the network show and end", func(t *testing.T) { testNetworkFaults(t, l.in(t)) })
	t.Run("a frozen node is lost and comes back", func(t *testing.T) { testLoss(t, l.in(t), "pause --freeze-clock", "resume") })
	t.Run("a paused node is lost and comes back", func(t *testing.T) { testLoss(t, l.in(t), "pause", "resume") })
	t.Run("a disconnected node is lost and comes back", func(t *testing.T) { testLoss(t, l.in(t), "cut", "heal") })
	t.Run("a node that crashed is lost and comes back", func(t *testing.T) { testCrash(t, l.in(t)) })
	t.Run("a killed component is started again", func(t *testing.T) { testComponent(t, l.in(t)) })

	before := l.status()
	l.do("down")
	t.Run("nothing is left behind", func(t *testing.T) { testNothingLeft(t, l.in(t), before) })
}

func testFresh(t *testing.T, l *lab, up cluster.Status) {
	for _, n := range up.Nodes {
		if n.Control {
			continue
		}
		if n.Power != "on" || n.Ready != "True" || n.Cut || len(n.Disks) != 1 {
			t.Errorf("node is %+v", n)
		}
		size := l.do("exec", n.Name, "--", "blockdev", "--getsize64", n.Disks[0].Device)
		if size != strconv.FormatInt(1<<30, 10) {
			t.Errorf("disk of %s has %s bytes, want 1G", n.Name, size)
		}
	}
}

func testControl(t *testing.T, l *lab, up cluster.Status) {
	n := up.Nodes[len(up.Nodes)-1]
	if n.Name != "control" || !n.Control || n.Power != "on" || n.Ready != "True" || len(n.Disks) != 0 {
		t.Errorf("the last node is %+v, want control, on and Ready, without disks", n)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]bool{"control": true, "node1": false} {
		if got := l.do("exec", node, "--", "uname", "-r"); (got == strings.TrimSpace(string(kernel))) != want {
			t.Errorf("%s has kernel %s; want this machine's: %v", node, got, want)
		}
	}
	taint := l.kubectl("get", "node", "control", "-o", "jsonpath={.spec.taints[*].key}:{.spec.taints[*].effect}")
	if want := "node-role.kubernetes.io/control-plane:NoSchedule"; taint != want {
		t.Errorf("its taint is %q, want %q", taint, want)
	}
}

func testSecondUp(t *testing.T, l *lab, up cluster.Status) {
	l.do("up", "--nodes", "2")
	for i, p := range l.status().Processes {
		if p.PID != up.Processes[i].PID {
			t.Errorf("%s has pid %d, had %d", p.Name, p.PID, up.Processes[i].PID)
		}
	}
}

func testExec(t *testing.T, l *lab) {
	stdout, stderr, code := l.run(t.Context(), []byte("in"), "exec", "-i", "node1", "--", "sh", "-c", "cat; echo err >&2; exit 7")
	if stdout != "in" || stderr != "err\n" || code != 7 {
		t.Errorf("got output %q, errors %q, exit code %d; want in, err, 7", stdout, stderr, code)
	}
	if _, stderr, code := l.run(t.Context(), nil, "exec", "node9", "--", "true"); code == 0 || !strings.Contains(stderr, "node1, node2") {
		t.Errorf("a node that does not exist: exit code %d, %q; want the list of nodes", code, stderr)
	}
}

func testLoad(t *testing.T, l *lab) {
	archive := filepath.Join(t.TempDir(), "image.tar")
	l.do("image", "write", archive, "--ref", "localhost/loaded:1", "--file", "/lab="+l.program, "--entrypoint", "/lab")
	l.do("load", archive)
	for _, node := range []string{"node1", "node2"} {
		images := l.do("exec", node, "--", "ctr", "--namespace", "k8s.io", "images", "list", "-q")
		for _, want := range []string{"localhost/busybox:1", "localhost/loaded:1"} {
			if !slices.Contains(strings.Fields(images), want) {
				t.Errorf("%s has no image %s, but %q", node, want, images)
			}
		}
	}
}

func testPods(t *testing.T, l *lab) {
	l.kubectl("apply", "-f", filepath.Join("testdata", "pods.yaml"))
	l.kubectl("wait", "--for=condition=Ready", "--timeout=180s", "pod/client", "pod/server")
	server := l.kubectl("get", "pod", "server", "-o", "jsonpath={.status.podIP}")
	if got := l.kubectl("exec", "client", "--", "wget", "-qO-", "http://"+server+":8080/"); got != "hello" {
		t.Errorf("the server on the other node says %q, want hello", got)
	}
	// nc connects, runs a program that ends at once, and ends.
	l.kubectl("exec", "client", "--", "nc", "-w", "10", "10.96.0.1", "443", "-e", "true")
	l.kubectl("delete", "-f", filepath.Join("testdata", "pods.yaml"), "--grace-period=1", "--timeout=120s")
}

func testDisk(t *testing.T, l *lab) {
	name, device, _ := strings.Cut(l.do("disk", "add", "node1", "--size", "2G"), " ")
	present := func() bool {
		_, _, code := l.run(t.Context(), nil, "exec", "node1", "--", "test", "-b", device)
		return code == 0
	}
	l.eventually("the new disk is there", present)
	l.do("disk", "remove", "node1", name)
	l.eventually("the disk is gone", func() bool { return !present() })
}

func testSharedDisk(t *testing.T, l *lab) {
	name, device, _ := strings.Cut(l.do("disk", "share", "node1", "node2", "--size", "16M"), " ")
	has := func(node string) bool {
		_, _, code := l.run(t.Context(), nil, "exec", node, "--", "test", "-b", device)
		return code == 0
	}
	l.eventually("both nodes have the disk", func() bool { return has("node1") && has("node2") })
	l.do("exec", "node1", "--", "sh", "-c", "printf hello | dd of="+device+" bs=4096 conv=sync,fsync")
	if got := l.do("exec", "node2", "--", "sh", "-c", "dd if="+device+" iflag=direct bs=4096 count=1 | head -c 5"); got != "hello" {
		t.Errorf("node2 reads %q", got)
	}
	l.do("disk", "remove", "node1", name)
	l.do("disk", "share", "node1", "--disk", name)
	for _, node := range []string{"node1", "node2"} {
		l.do("disk", "remove", node, name)
	}
	if left, err := filepath.Glob(filepath.Join(l.root, "*", "shared", "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v (%v)", left, err)
	}
}

func testNetworkFaults(t *testing.T, l *lab) {
	l.do("cut", "node2", "--from", "peers,san")
	l.do("netem", "node2", "--delay", "5ms", "--loss", "1")
	if n := l.node("node2"); len(n.Lost) != 2 || n.Link.Loss != 1 {
		t.Errorf("with faults, node2 is %+v", n)
	}
	l.do("heal", "node2", "--from", "san")
	if n := l.node("node2"); len(n.Lost) != 1 {
		t.Errorf("with a fault less, node2 is %+v", n)
	}
	l.do("heal", "node2")
	if n := l.node("node2"); len(n.Lost) != 0 || n.Link.String() != "" {
		t.Errorf("healed, node2 is %+v", n)
	}
}

func testLoss(t *testing.T, l *lab, lose, find string) {
	l.do(append(strings.Fields(lose), "node2")...)
	l.eventually("node2 is not Ready", func() bool { return !l.ready("node2") })
	if !l.ready("node1") {
		t.Error("the other node was lost too")
	}
	l.do(find, "node2")
	l.eventually("node2 is Ready", func() bool { return l.ready("node2") })
}

func testCrash(t *testing.T, l *lab) {
	mark := "/var/lib/mark"
	l.do("exec", "node2", "--", "sh", "-c", "echo kept > "+mark+"; sync")
	l.do("power", "off", "node2")
	if n := l.node("node2"); n.Power != "off" {
		t.Errorf("node2 is %s after power off", n.Power)
	}
	l.eventually("node2 is not Ready", func() bool { return !l.ready("node2") })
	l.do("power", "on", "node2")
	l.eventually("node2 is Ready", func() bool { return l.ready("node2") })
	if got := l.do("exec", "node2", "--", "cat", mark); got != "kept" {
		t.Errorf("what was written before the crash is %q", got)
	}
}

func testComponent(t *testing.T, l *lab) {
	i := slices.IndexFunc(l.status().Processes, func(p cluster.ProcessStatus) bool { return p.Name == "kube-apiserver" })
	server, err := os.FindProcess(l.status().Processes[i].PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	l.eventually("the API server has ended", func() bool { return !l.status().Processes[i].Running })
	l.do("up")
	if s := l.status(); !s.Processes[i].Running || s.Problem != "" {
		t.Errorf("after up the API server is %+v: %s", s.Processes[i], s.Problem)
	}
}

func testNothingLeft(t *testing.T, l *lab, before cluster.Status) {
	for _, p := range before.Processes {
		wantEnded(t, p.Name, p.PID)
	}
	for _, n := range before.Nodes {
		wantEnded(t, n.Name, n.PID)
	}
	namespaces, err := filepath.Glob("/run/netns/berth-lab-lab-test*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(namespaces, l.root) {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), l.root) || strings.Contains(string(mounts), "berth-lab-lab-test") {
		t.Errorf("something is still mounted (%v):\n%s", err, mounts)
	}
	if _, stderr, code := l.run(t.Context(), nil, "status"); code == 0 || !strings.Contains(stderr, "lab up") {
		t.Errorf("status says %q with exit code %d, want how to start a cluster", stderr, code)
	}
}

// wantEnded checks that a process is gone.
func wantEnded(t *testing.T, name string, pid int) {
	t.Helper()
	if pid == 0 {
		return
	}
	if comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); err == nil && len(comm) > 0 {
		t.Errorf("%s still runs with pid %d: %s", name, pid, strings.ReplaceAll(string(comm), "\x00", " "))
	}
}
