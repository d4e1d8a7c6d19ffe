//go:build platform

package guesttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard/holders"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/kernel"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/conformance"
	"berth.dev/berth/internal/run"
)

var disk = shared.Disk{
	Volume: "pvc-1", Identity: provision.Identity(namePrefix + serial),
	Handle: fmt.Sprintf("iscsi://%s/%s/1", portal, targetName),
}

// slot has one block of the tests. The n-th write of a test goes into the n-th slot.
const slot = 4096

// san is a target with two disks, and the three nodes.
type san struct {
	t      testing.TB
	target *target
	disks  []string
	nodes  map[string]*iscsi.Disks
	next   int64
}

func newSAN(t testing.TB) *san {
	t.Helper()
	prepare(t)
	disks := blockdevtest.Disks(t, 2)
	s := &san{t: t, disks: disks, nodes: map[string]*iscsi.Disks{}, target: &target{t: t, disk: disks[0], allowed: map[string]bool{}}}
	s.clean()
	blockdevtest.WriteAt(t, disks[0], strings.Repeat("\x00", 64*slot), 0)
	for _, n := range nodes {
		s.target.allowed[n] = true
		s.nodes[n] = iscsi.New(iscsi.Config{
			Runner: run.Exec{}, Kernel: kernel.Kernel{}, Used: holders.Used, Interface: n, Patience: time.Minute,
			Promises: shared.Capabilities{Abort: true, Persistent: true},
		})
	}
	s.target.start()
	t.Cleanup(func() {
		for _, n := range s.nodes {
			n.Wait()
		}
		s.clean()
	})
	return s
}

// clean ends all sessions and removes the target and all that was saved.
func (s *san) clean() {
	s.t.Helper()
	sh(s.t, `iscsiadm -m session --logout >&2 || test $? = 21
iscsiadm -m node -o delete || test $? = 21
rm -f `+savedDir+`/*
udevadm settle`)
	s.target.stop()
}

// session returns the directory of a node's session, empty if it has none.
func (s *san) session(node string) string {
	s.t.Helper()
	dirs, err := filepath.Glob("/sys/class/iscsi_session/session*")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range dirs {
		if name, err := blockdev.ReadLine(dir + "/ifacename"); err == nil && name == node {
			return dir
		}
	}
	return ""
}

// device returns the path of a node's disk.
func (s *san) device(node string) string {
	s.t.Helper()
	names, err := filepath.Glob(s.session(node) + "/device/target*/*:1/block/*")
	if err != nil || len(names) != 1 {
		s.t.Fatalf("node %s has the disks %v, %v", node, names, err)
	}
	return "/dev/" + filepath.Base(names[0])
}

// settled waits for the nodes and for udev, and lets the target refuse a third node.
func (s *san) settled() {
	s.t.Helper()
	for _, n := range s.nodes {
		n.Wait()
	}
	sh(s.t, "udevadm settle")
	var out []string
	for _, n := range nodes {
		if s.session(n) == "" {
			out = append(out, n)
		}
	}
	for _, n := range out {
		if len(out) == 1 {
			s.target.refuse(n)
		} else {
			s.target.allow(n)
		}
	}
}

// relogin logs a node out and in again. The records of the nodes replace each other, since they are
// for one portal.
func (s *san) relogin(node string) {
	s.t.Helper()
	sh(s.t, fmt.Sprintf(`iscsiadm -m session -r %[1]s --logout
r="-m node -T %[2]s -p %[3]s -I %[4]s"
iscsiadm $r -o new
iscsiadm $r -o update -n node.session.scan -v manual
iscsiadm $r --login`, strings.TrimPrefix(filepath.Base(s.session(node)), "session"), targetName, portal, node))
	host := filepath.Base(filepath.Dir(s.links(s.session(node) + "/device")))
	put(s.t, "/sys/class/scsi_host/"+host+"/scan", "- - 1")
	sh(s.t, fmt.Sprintf("for i in $(seq 600); do test -e %s/device/target*/*:1/block/* && break; sleep 0.1; done; udevadm settle", s.session(node)))
}

func (s *san) links(path string) string {
	s.t.Helper()
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return to
}

// restart takes the target's power away and gives it back.
func (s *san) restart() {
	s.t.Helper()
	s.target.stop()
	s.target.start()
	s.awaitSessions("LOGGED_IN", "running")
}

// awaitSessions waits until all sessions are in a state, and their disks in another.
func (s *san) awaitSessions(session, disk string) {
	s.t.Helper()
	sh(s.t, fmt.Sprintf(`for s in /sys/class/iscsi_session/session*; do
  for i in $(seq 600); do
    test "$(cat $s/state) $(cat $s/device/target*/*:1/state)" = "%[1]s %[2]s" && break
    sleep 0.1
  done
  test "$(cat $s/state) $(cat $s/device/target*/*:1/state)" = "%[1]s %[2]s"
done`, session, disk))
}

// open lets another process have a node's disk open.
func (s *san) open(node string) conformance.Device {
	s.t.Helper()
	path := s.device(node)
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = run.Exec{}.Query(ctx, run.Command{Operation: "opener", Program: "sh", Args: []string{"-c", `exec sleep 1000 <"$0"`, path}})
	}()
	number, err := blockdev.Number(path)
	if err != nil {
		s.t.Fatal(err)
	}
	for why := ""; why == ""; {
		if why, err = holders.Used(fmt.Sprintf("%d:%d", unix.Major(number), unix.Minor(number))); err != nil {
			s.t.Fatal(err)
		}
	}
	return conformance.Device{
		Write:  func(block string) error { return s.write(s.device(node), block, unix.O_DIRECT|unix.O_SYNC) },
		Buffer: func(block string) { s.must(s.write(path, block, 0)) },
		Close: func() {
			cancel()
			<-ended
			sh(s.t, "udevadm settle")
		},
	}
}

func same(a, b shared.View) bool { return reflect.DeepEqual(a, b) }

func (s *san) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// write writes a block into the next slot.
func (s *san) write(path, block string, flags int) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buffer := blockdev.Buffer(slot)
	copy(buffer, block)
	_, err = unix.Pwrite(fd, buffer, s.next*slot)
	s.next++
	return err
}

func (s *san) writeBack(node string) error {
	f, err := os.Open(s.device(node))
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// written reads the target's disk. The blocks of one test are written one after another.
func (s *san) written() (blocks []string) {
	s.t.Helper()
	for n := range s.next {
		if text := strings.TrimRight(blockdevtest.ReadAt(s.t, s.disks[0], 16, n*slot), "\x00"); text != "" {
			blocks = append(blocks, text)
		}
	}
	return blocks
}

func (s *san) world() *conformance.World {
	return &conformance.World{
		Disk: disk, Node: func(name string) shared.Disks { return s.nodes[name] },
		Settled: s.settled, Open: s.open, WriteBack: s.writeBack, Relogin: s.relogin, Restart: s.restart,
		Written: s.written, Misplace: func() { s.target.misplace(s.disks[1]) }, Lenient: true,
	}
}
