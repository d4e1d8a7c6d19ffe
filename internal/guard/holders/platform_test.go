//go:build platform

package holders

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
)

// machine is this machine with a control group of its own for pods.
type machine struct {
	t      *testing.T
	kernel *Kernel
	agent  string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t}
	pods := fmt.Sprintf("/berth-guard-%d", os.Getpid())
	root := cgroupRoot(t)
	if err := os.MkdirAll(filepath.Join(root, pods), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(filepath.Join(root, pods, "cgroup.kill"), []byte("1"), 0); err != nil {
			t.Error(err)
		}
		btrfstest.Run(t, "sh", "-c", "until rmdir "+filepath.Join(root, pods)+"/*/* "+filepath.Join(root, pods)+"/* "+filepath.Join(root, pods)+" 2>/dev/null || ! test -d "+filepath.Join(root, pods)+"; do :; done")
	})
	kernel, err := New(Config{Pods: pods, Agent: func() string { return m.agent }})
	if err != nil {
		t.Fatal(err)
	}
	m.kernel = kernel
	return m
}

func cgroupRoot(t *testing.T) string {
	t.Helper()
	mounts := btrfstest.Run(t, "findmnt", "--noheadings", "--output", "TARGET", "--types", "cgroup2")
	return strings.Fields(mounts)[0]
}

// process runs a shell's script in a container of a pod, or on the machine itself if pod is empty,
// and returns when the script has printed a line.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan error
}

func (m *machine) start(pod string, unshare []string, script string) *process {
	m.t.Helper()
	args := append(append([]string{}, unshare...), "sh", "-c", script)
	cmd := exec.Command(args[0], args[1:]...) //nolint:forbidigo,noctx // it runs while the test goes on, until the guard or the test kills it
	if pod != "" {
		dir := filepath.Join(m.kernel.cgroups, m.kernel.pods, pod, "container")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			m.t.Fatal(err)
		}
		f, err := os.Open(dir)
		if err != nil {
			m.t.Fatal(err)
		}
		defer f.Close()
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		m.t.Fatalf("the process of pod %q did not begin: %v", pod, err)
	}
	p := &process{t: m.t, cmd: cmd, ended: make(chan error, 1)}
	go func() { p.ended <- cmd.Wait() }()
	m.t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Process.Kill() })
	return p
}

// lives tells whether the process has not ended.
func (p *process) lives() bool {
	select {
	case err := <-p.ended:
		p.ended <- err
		return false
	default:
		return p.cmd.Process.Signal(syscall.Signal(0)) == nil
	}
}

// killed waits for the process to end.
func (p *process) killed() {
	p.t.Helper()
	if err := <-p.ended; err == nil || !strings.Contains(err.Error(), "killed") {
		p.t.Errorf("the process ended with %v", err)
	}
}

func (p *process) end() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.ended <- <-p.ended
}

// stops asks until nothing holds the volume.
func (m *machine) stops(h guard.Holding) {
	m.t.Helper()
	m.t.Cleanup(func() {
		if err := m.kernel.Allow(h); err != nil {
			m.t.Error(err)
		}
	})
	var err error
	for range 20 {
		if err = m.kernel.Stop(h); err == nil {
			return
		}
	}
	m.t.Fatalf("the volume is held in the end: %v", err)
}

// own has a container's mount namespace; given gets the machine's later mounts and unmounts.
var (
	own   = []string{"unshare", "--mount", "--propagation", "private"}
	given = []string{"unshare", "--mount", "--propagation", "slave"}
)

// filesystem is a volume with a filesystem on a loop device, mounted below a directory whose mounts
// other namespaces may get.
func (m *machine) filesystem() (h guard.Holding, at string) {
	m.t.Helper()
	at = m.shared()
	return m.filesystemAt(at), at
}

func (m *machine) filesystemAt(at string) guard.Holding {
	m.t.Helper()
	disk := btrfstest.Disk(m.t, 64<<20)
	btrfstest.Run(m.t, "mkfs.ext4", "-q", disk)
	btrfstest.Run(m.t, "mount", disk, at)
	m.t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	return guard.Holding{Device: numberOf(m.t, disk), Block: true}
}

func (m *machine) shared() string {
	m.t.Helper()
	dir := m.t.TempDir()
	btrfstest.Run(m.t, "mount", "--bind", dir, dir)
	m.t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	btrfstest.Run(m.t, "mount", "--make-shared", dir)
	at := filepath.Join(dir, "volume")
	if err := os.Mkdir(at, 0o755); err != nil {
		m.t.Fatal(err)
	}
	return at
}

func numberOf(t *testing.T, device string) string {
	t.Helper()
	n, err := blockdev.Number(device)
	if err != nil {
		t.Fatal(err)
	}
	return number(unix.Major(n), unix.Minor(n))
}

const (
	idles  = "echo up; read never"
	writes = "exec 3>>%s; echo up; while :; do echo x >&3; done"
)

func TestPodsThatHoldAFilesystemAreKilledAndNoOthers(t *testing.T) {
	m := newMachine(t)
	bystander := m.start("bystander", own, idles)
	h, at := m.filesystem()
	writer := m.start("writer", own, fmt.Sprintf(writes, at+"/file"))
	idle := m.start("idle", own, idles)
	if err := m.kernel.Free(h); err == nil {
		t.Error("a volume that is written is called free")
	}
	m.stops(h)
	writer.killed()
	idle.killed()
	if !bystander.lives() {
		t.Error("a pod that never had the volume was killed")
	}
	if err := m.kernel.Free(h); err != nil {
		t.Error(err)
	}
	if err := m.kernel.Stop(h); err != nil {
		t.Errorf("stopping again what is stopped: %v", err)
	}
}

func TestAContainerThatBeginsAnewFindsNothingThatItCanWriteTo(t *testing.T) {
	m := newMachine(t)
	at := filepath.Join(m.shared(), "pods/uid/volumes/kubernetes.io~csi/pvc/mount")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	h := m.filesystemAt(at)
	btrfstest.Run(t, "mount", "--bind", at, at) // a kubelet that asks twice
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	writer := m.start("writer", own, fmt.Sprintf(writes, at+"/file"))
	m.stops(h)
	writer.killed()
	m.stops(h)
	initialises := func() error { return os.WriteFile(filepath.Join(at, "PG_VERSION"), []byte("18"), 0o600) }
	if err := initialises(); !errors.Is(err, unix.EROFS) {
		t.Errorf("a database begins anew where the volume was: %v", err)
	}
	if err := unix.Unmount(at, 0); err != nil {
		t.Error(err)
	}
	if err := initialises(); err != nil {
		t.Errorf("more than one mount was left: %v", err)
	}
}

func TestAPodThatOnlySeesTheMachinesMountsLivesAndLosesTheMount(t *testing.T) {
	m := newMachine(t)
	h, _ := m.filesystem()
	monitoring := m.start("monitoring", given, idles)
	m.stops(h)
	if !monitoring.lives() {
		t.Error("it was killed")
	}
}

// A container with mountPropagation: Bidirectional has its volume's mount as a peer of the machine's, on a root of its own.
func TestAPodThatSharesTheMountOfItsOwnVolumeIsKilledOnceTheMachinesHasGone(t *testing.T) {
	m := newMachine(t)
	h, at := m.filesystem()
	root := t.TempDir()
	btrfstest.Run(t, "mount", "--bind", root, root)
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	btrfstest.Run(t, "mount", "--make-private", root)
	sharer := m.start("sharer", []string{"unshare", "--mount", "--propagation", "unchanged"}, "mount --bind "+at+" "+root+" && "+idles)
	m.stops(h)
	sharer.killed()
}

func TestARawDeviceHasNoWriterAfterwards(t *testing.T) {
	m := newMachine(t)
	disk := btrfstest.Disk(t, 8<<20)
	h := guard.Holding{Device: numberOf(t, disk), Block: true}
	node := filepath.Join(t.TempDir(), "of-the-pods-own-choice")
	btrfstest.Run(t, "cp", "-a", disk, node)
	writer := m.start("writer", own, fmt.Sprintf("exec 3<>%s; echo up; while :; do echo x >&3; done", node))
	m.stops(h)
	writer.killed()
	tries := func() bool {
		f, err := os.OpenFile(disk, os.O_WRONLY, 0)
		if err != nil {
			return false
		}
		defer f.Close()
		_, err = f.WriteAt(make([]byte, 4096), 0)
		return err == nil
	}
	if tries() {
		t.Error("a container that begins anew can write")
	}
	if err := m.kernel.Allow(h); err != nil {
		t.Fatal(err)
	}
	if !tries() {
		t.Error("the volume cannot be written once its epoch was closed")
	}
}

func TestWhatIsNoPodsIsNotKilledAndThereIsNoProof(t *testing.T) {
	for name, pod := range map[string]string{"a process of the machine": "", "the agent": "agent"} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			h, at := m.filesystem()
			if pod != "" {
				m.agent = m.kernel.pods + "/" + pod + "/other-container"
			}
			p := m.start(pod, []string{"env"}, "cd "+at+"; "+idles)
			for range 3 {
				if err := m.kernel.Stop(h); err == nil || !strings.Contains(err.Error(), "still held: process") {
					t.Errorf("with %s in it: %v", name, err)
				}
			}
			if !p.lives() {
				t.Error("it was killed")
			}
			p.end()
			m.stops(h)
		})
	}
}

func TestAFilesystemThatIsMountedNowhereButOpenIsHeld(t *testing.T) {
	m := newMachine(t)
	h, at := m.filesystem()
	p := m.start("", []string{"env"}, "exec 3>"+at+"/file; cd /; "+idles)
	btrfstest.Run(t, "umount", "--lazy", at)
	if err := m.kernel.Stop(h); err == nil {
		t.Error("it is called free")
	}
	p.end()
	m.stops(h)
}

func TestADeviceUnderAnotherDeviceIsHeld(t *testing.T) {
	m := newMachine(t)
	disk := btrfstest.Disk(t, 8<<20)
	h := guard.Holding{Device: numberOf(t, disk), Block: true}
	above := btrfstest.Run(t, "losetup", "--find", "--show", disk)
	detached := false
	detach := func() {
		if !detached {
			btrfstest.Run(t, "losetup", "--detach", above)
			detached = true
		}
	}
	t.Cleanup(detach)
	if err := m.kernel.Free(h); err == nil {
		t.Error("it is called free")
	}
	detach()
	m.stops(h)
}

func TestOfTwoTreesOfAFilesystemOnlyTheOnesPodsAreKilled(t *testing.T) {
	m := newMachine(t)
	disk := btrfstest.Disk(t, 128<<20)
	btrfstest.Run(t, "mkfs.btrfs", "-q", disk)
	pool := t.TempDir()
	btrfstest.Run(t, "mount", disk, pool)
	t.Cleanup(func() { _ = unix.Unmount(pool, unix.MNT_DETACH) })
	held := map[string]guard.Holding{}
	pods := map[string]*process{}
	for _, name := range []string{"one", "two"} {
		btrfstest.Run(t, "btrfs", "subvolume", "create", filepath.Join(pool, name))
	}
	for _, name := range []string{"one", "two"} {
		at := filepath.Join(t.TempDir())
		// Each pod has the mount of its own volume alone, as containers do.
		pods[name] = m.start(name, own, fmt.Sprintf("mount -o subvol=%s %s %s && umount %s && exec 3>%s/f && "+idles, name, disk, at, pool, at))
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(pool, name), &st); err != nil {
			t.Fatal(err)
		}
		files := number(unix.Major(st.Dev), unix.Minor(st.Dev))
		device := btrfstest.Run(t, "findmnt", "--noheadings", "--output", "MAJ:MIN", pool)
		held[name] = guard.Holding{Device: strings.TrimSpace(device), Root: "/" + name, Files: files}
	}
	m.stops(held["one"])
	pods["one"].killed()
	if !pods["two"].lives() {
		t.Error("the pod of another volume of the filesystem was killed")
	}
	if err := m.kernel.Free(held["two"]); err == nil {
		t.Error("the other volume is called free")
	}
}
