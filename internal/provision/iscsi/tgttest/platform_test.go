//go:build platform

package tgttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/conformance"
	"berth.dev/berth/internal/run"
)

const (
	targetName = "iqn.2026-01.dev.berth.test:tgt"
	unit       = 1
	serial     = "berth-one"
	sector     = 512
	shares     = 2
)

// san is tgtd with one unit, and three nodes.
type san struct {
	t       testing.TB
	dir     string
	address string
	stop    func()
	nodes   map[string]*machine
	disks   map[string]*iscsi.Disks

	count struct {
		sync.Mutex
		sessions int
		isid     uint16
		fixed    bool // all sessions have one identifier
		writes   int
	}
}

func newSAN(t testing.TB, promises shared.Capabilities) *san {
	t.Helper()
	dir, err := os.MkdirTemp("", "tgt") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	s := &san{t: t, dir: dir, nodes: map[string]*machine{}, disks: map[string]*iscsi.Disks{}, address: freeAddress(t)}
	for _, name := range []string{"unit", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.start()
	for _, name := range []string{"a", "b", "c"} {
		m := &machine{san: s, name: name}
		s.nodes[name] = m
		s.disks[name] = iscsi.New(iscsi.Config{Runner: m, Kernel: m, Used: m.used, Promises: promises})
	}
	t.Cleanup(func() {
		s.settled()
		s.stop()
		os.RemoveAll(dir)
	})
	return s
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts tgtd. It ends with s.stop.
func (s *san) start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		_, failed = run.Exec{}.Query(ctx, s.command("tgtd", "--foreground", "--iscsi", "portal="+s.address))
	}()
	s.stop = func() {
		cancel()
		<-ended
	}
	for {
		_, err := run.Exec{}.Query(ctx, s.command("tgtadm", "--mode", "system", "--op", "show"))
		if err == nil {
			break
		}
		select {
		case <-ended:
			s.t.Fatalf("tgtd has ended: %v", failed)
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.admin("--lld", "iscsi", "--mode", "target", "--op", "new", "--tid", "1", "--targetname", targetName)
	s.admin("--lld", "iscsi", "--mode", "target", "--op", "bind", "--tid", "1", "--initiator-address", "ALL")
	s.offer("unit", serial)
}

func (s *san) command(program string, args ...string) run.Command {
	return run.Command{Operation: program, Program: program, Args: args, Env: []string{"TGT_IPC_SOCKET=" + filepath.Join(s.dir, "socket")}}
}

func (s *san) admin(args ...string) {
	s.t.Helper()
	if _, err := (run.Exec{}).Change(s.command("tgtadm", args...)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *san) offer(file, serial string) {
	s.t.Helper()
	number := fmt.Sprint(unit)
	s.admin("--lld", "iscsi", "--mode", "logicalunit", "--op", "new", "--tid", "1", "--lun", number, "--backing-store", filepath.Join(s.dir, file))
	s.admin("--lld", "iscsi", "--mode", "logicalunit", "--op", "update", "--tid", "1", "--lun", number, "--params", "scsi_sn="+serial)
}

func (s *san) misplace() {
	s.t.Helper()
	s.admin("--lld", "iscsi", "--mode", "logicalunit", "--op", "delete", "--tid", "1", "--lun", fmt.Sprint(unit))
	s.offer("other", "berth-two")
}

func (s *san) restart() {
	s.t.Helper()
	s.stop()
	s.start()
	for name := range s.nodes {
		s.relogin(name)
	}
}

func (s *san) relogin(node string) {
	s.t.Helper()
	if err := s.nodes[node].relogin(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *san) settled() {
	for _, d := range s.disks {
		d.Wait()
	}
}

// admit takes one of the shares, which tgtd does not count.
func (s *san) admit() bool {
	s.count.Lock()
	defer s.count.Unlock()
	if s.count.sessions == shares {
		return false
	}
	s.count.sessions++
	return true
}

func (s *san) leave() {
	s.count.Lock()
	defer s.count.Unlock()
	s.count.sessions--
}

// isid returns a new identifier for each session, so that the target takes it for another one,
// unless the identifier is fixed.
func (s *san) isid() uint16 {
	s.count.Lock()
	defer s.count.Unlock()
	if !s.count.fixed {
		s.count.isid++
	}
	return s.count.isid
}

// place returns where the next block is written.
func (s *san) place() int {
	s.count.Lock()
	defer s.count.Unlock()
	s.count.writes++
	return s.count.writes - 1
}

func (s *san) written() (blocks []string) {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "unit"))
	if err != nil {
		s.t.Fatal(err)
	}
	for n := range s.count.writes {
		if text := strings.TrimRight(string(data[n*sector:(n+1)*sector]), "\x00"); text != "" {
			blocks = append(blocks, text)
		}
	}
	return blocks
}

func (s *san) disk() shared.Disk {
	return shared.Disk{Volume: "pvc-1", Handle: fmt.Sprintf("iscsi://%s/%s/%d", s.address, targetName, unit), Identity: "serial." + serial}
}

func TestConformanceOnTGT(t *testing.T) {
	conformance.Run(t, func(t *testing.T) *conformance.World {
		s := newSAN(t, shared.Capabilities{})
		return &conformance.World{
			Disk: s.disk(), Settled: s.settled, Relogin: s.relogin, Restart: s.restart, Written: s.written, Misplace: s.misplace,
			Node:      func(name string) shared.Disks { return s.disks[name] },
			WriteBack: func(name string) error { return s.nodes[name].writeBack() },
			Open: func(name string) conformance.Device {
				m := s.nodes[name]
				return conformance.Device{Write: m.write, Buffer: m.buffer, Close: m.open()}
			},
		}
	})
}

// A target may take a session that logs in anew for the old one, if it has the same identifier.
func TestASessionHoldsTheReservationIfAndOnlyIfTheTargetTakesItsWrites(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		s := newSAN(t, shared.Capabilities{})
		s.count.fixed = fixed
		a, d := s.disks["a"], s.disk()
		if err := a.Attach(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		s.settled()
		if err := errors.Join(a.Register(t.Context(), d, 'a', shared.Idle), a.Reserve(t.Context(), d, 0, 'a')); err != nil {
			t.Fatal(err)
		}
		s.relogin("a")
		v, err := a.Look(t.Context(), d)
		refused := s.nodes["a"].write("1")
		t.Logf("with one identifier %v: %+v; a write: %v", fixed, v.Disk, refused)
		if err != nil || v.Holder != 'a' || v.Holding != (refused == nil) {
			t.Errorf("with one identifier %v: %+v, %v; a write: %v", fixed, v.Disk, err, refused)
		}
	}
}

func TestTGTKeepsNoPromise(t *testing.T) {
	s := newSAN(t, shared.Capabilities{Persistent: true})
	if err := s.disks["a"].Attach(t.Context(), s.disk()); err != nil {
		t.Fatal(err)
	}
	s.settled()
	v, err := s.disks["a"].Look(t.Context(), s.disk())
	if err != nil || v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "forgets its reservations") {
		t.Errorf("a target that was to keep reservations: %+v, %v", v, err)
	}

	s = newSAN(t, shared.Capabilities{Abort: true})
	for _, n := range []string{"a", "b"} {
		if err := s.disks[n].Attach(t.Context(), s.disk()); err != nil {
			t.Fatal(err)
		}
		s.settled()
		if err := s.disks[n].Register(t.Context(), s.disk(), ownership.RawKey(n[0]), shared.Idle); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.disks["a"].Reserve(t.Context(), s.disk(), 0, 'a'); err != nil {
		t.Fatal(err)
	}
	if err := s.disks["b"].Reserve(t.Context(), s.disk(), 'a', 'b'); !errors.Is(err, provision.ErrUnsupported) {
		t.Errorf("a target that was to abort commands: %v", err)
	}
}
