//go:build platform

package takeover

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"berth.dev/berth/internal/provision/shared/simdisk"
)

// machine is a node's machine: namespaces that live as long as their first process.
type machine struct {
	name    string
	number  int
	boots   int
	boot    string // its id
	first   *exec.Cmd
	started []*exec.Cmd
}

func (m *machine) address() string { return fmt.Sprintf("10.88.0.%d", 10+m.number) }

// link is the name of the machine's end on the bridge. The one of an earlier boot may not be gone yet.
func (m *machine) link() string { return fmt.Sprintf("n%db%d", m.number, m.boots) }

// kept is a directory that outlives the machine's power, and lost one that does not.
func (m *machine) kept(names ...string) string {
	return filepath.Join(append([]string{*site, m.name}, names...)...)
}
func (m *machine) lost(names ...string) string {
	return m.kept(append([]string{"run"}, names...)...)
}

// powerOn boots the machine.
func (m *machine) powerOn() error {
	m.boots++
	m.boot, m.started = string(uuid.NewUUID()), nil
	if err := os.RemoveAll(m.lost()); err != nil {
		return err
	}
	for _, dir := range []string{m.lost(), m.kept("kubelet", "plugins_registry"), m.kept("kubelet", "pods"), m.kept("logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(m.lost("boot"), []byte(m.boot+"\n"), 0o600); err != nil {
		return err
	}
	m.first = exec.Command("sh", "-euc", "mount -t proc proc /proc; mount --bind "+m.lost("boot")+" /proc/sys/kernel/random/boot_id; hostname "+m.name+"; "+ //nolint:noctx // it lives until the power goes
		"echo up; exec sleep infinity")
	m.first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS}
	m.first.Stderr = os.Stderr
	out, err := m.first.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.first.Start(); err != nil {
		return err
	}
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("machine %s does not come up: %q, %w", m.name, said, err)
	}
	return m.connect()
}

// connect gives the machine its network. Its address of the hardware stays the same: others may remember it.
func (m *machine) connect() error {
	inside := []string{"nsenter", "--target", m.pid(), "--net", "--"}
	for _, command := range [][]string{
		{"ip", "link", "add", m.link(), "type", "veth", "peer", "name", "eth0", "address", fmt.Sprintf("02:00:00:00:00:%02x", m.number), "netns", m.pid()},
		{"ip", "link", "set", m.link(), "master", bridge, "up"},
		append(inside, "ip", "link", "set", "lo", "up"),
		append(inside, "ip", "addr", "add", m.address()+"/24", "dev", "eth0"),
		append(inside, "ip", "link", "set", "eth0", "up"),
	} {
		if err := do(command...); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) pid() string { return strconv.Itoa(m.first.Process.Pid) }

// start begins a process on the machine. What it says goes to out.
func (m *machine) start(out io.Writer, command ...string) (*exec.Cmd, error) {
	c := exec.Command("nsenter", append([]string{"--target", m.pid(), "--net", "--pid", "--mount", "--uts", "--"}, command...)...) //nolint:noctx // it lives until the power goes
	c.Env = append(os.Environ(), "NODE_NAME="+m.name, "POD_IP="+m.address())
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("starting %s on %s: %w", command[0], m.name, err)
	}
	m.started = append(m.started, c)
	return c, nil
}

// log is the file of what a process says in this boot.
func (m *machine) log(process string) (io.Writer, error) {
	return os.OpenFile(m.kept("logs", fmt.Sprintf("%s-%d.log", process, m.boots)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// powerOff is the loss of the machine: it falls silent, and then its processes end at once. No connection is
// closed for others to see.
func (m *machine) powerOff() (time.Time, error) {
	err := do("ip", "link", "set", m.link(), "down")
	at := time.Now()
	err = errors.Join(err, m.first.Process.Kill())
	_ = m.first.Wait() // the kernel has ended all processes of the namespace by then
	for _, c := range m.started {
		_ = c.Wait()
	}
	return at, errors.Join(err, simdisk.PowerOff(disks(), lun, m.name))
}

// end ends one process that start began, by its own process on the machine.
func end(c *exec.Cmd) error {
	children := fmt.Sprintf("/proc/%d/task/%d/children", c.Process.Pid, c.Process.Pid)
	text, err := os.ReadFile(children)
	if err != nil {
		return err
	}
	for field := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return err
		}
	}
	_ = c.Wait()
	return nil
}
