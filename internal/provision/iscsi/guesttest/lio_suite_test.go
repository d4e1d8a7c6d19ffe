//go:build platform

package guesttest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/conformance"
)

func TestConformanceOnTheKernelsTarget(t *testing.T) {
	conformance.Run(t, func(t *testing.T) *conformance.World { return newSAN(t).world() })
}

func key(node string, number uint64) ownership.RawKey {
	return ownership.Key{Node: node, Epoch: lineage.Epoch{Number: number, ID: "id"}}.Raw()
}

func (s *san) attach(names ...string) {
	s.t.Helper()
	for _, n := range names {
		s.must(s.nodes[n].Attach(s.t.Context(), disk))
		s.settled()
	}
}

func (s *san) take(node string, expect, k ownership.RawKey) {
	s.t.Helper()
	s.must(s.nodes[node].Register(s.t.Context(), disk, k, shared.Idle))
	s.must(s.nodes[node].Reserve(s.t.Context(), disk, expect, k))
}

// The program sg_persist is written by others, and reads what this package wrote.
func TestAnotherProgramReadsTheSameReservation(t *testing.T) {
	s := newSAN(t)
	s.attach("a", "b")
	s.take("a", 0, key("a", 1))
	s.must(s.nodes["b"].Register(t.Context(), disk, key("b", 1), shared.Idle))
	keys := sh(t, "sg_persist --in --no-inquiry --read-keys "+s.device("b"))
	for _, k := range []ownership.RawKey{key("a", 1), key("b", 1)} {
		if !strings.Contains(keys, fmt.Sprintf("%#x", uint64(k))) {
			t.Errorf("key %#x is not among\n%s", uint64(k), keys)
		}
	}
	held := sh(t, "sg_persist --in --no-inquiry --read-reservation "+s.device("b"))
	if !strings.Contains(held, fmt.Sprintf("%#x", uint64(key("a", 1)))) || !strings.Contains(held, "type: Write Exclusive\n") && !strings.HasSuffix(held, "type: Write Exclusive") {
		t.Errorf("the reservation is\n%s", held)
	}
}

func TestAnotherProgramReadsTheReservationOfSeveral(t *testing.T) {
	s, several := newSAN(t), disk
	several.ManyWriters, several.Persistent = true, true
	s.attach("a", "b")
	s.must(s.nodes["a"].Register(t.Context(), several, key("a", 1), shared.Idle))
	s.must(s.nodes["a"].Reserve(t.Context(), several, 0, key("a", 1)))
	s.must(s.nodes["b"].Register(t.Context(), several, key("b", 1), shared.Idle))
	s.must(s.nodes["b"].Reserve(t.Context(), several, key("a", 1), key("b", 1)))
	// The next command of a would be answered with the news that its registration is gone.
	held := sh(t, "sg_persist --in --no-inquiry --read-reservation "+s.device("b"))
	if !strings.Contains(held, fmt.Sprintf("%#x", uint64(key("b", 1)))) || !strings.Contains(held, "type: Write Exclusive, registrants only") {
		t.Errorf("the reservation is\n%s", held)
	}
}

func TestAPathThatComesBackDisturbsNothing(t *testing.T) {
	s := newSAN(t)
	s.attach("a")
	s.take("a", 0, key("a", 1))
	before, err := s.nodes["a"].Look(t.Context(), disk)
	s.must(err)
	s.target.enable(false)
	s.awaitSessions("FAILED", "blocked")
	if v, err := s.nodes["a"].Look(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) || !same(v, shared.View{}) {
		t.Errorf("while the path is away the disk is %+v, %v", v, err)
	}
	s.target.enable(true)
	s.awaitSessions("LOGGED_IN", "running")
	if after, err := s.nodes["a"].Look(t.Context(), disk); err != nil || !same(after, before) {
		t.Errorf("the disk is %+v, %v, and was %+v", after, err, before)
	}
	d := s.open("a")
	defer d.Close()
	s.must(d.Write("1"))
}

func TestADiskWithAFilesystemIsInUseWhileItIsMounted(t *testing.T) {
	s := newSAN(t)
	s.attach("a")
	s.take("a", 0, key("a", 1))
	at := t.TempDir()
	sh(t, fmt.Sprintf("mkfs.ext4 -q -F %[1]s; udevadm settle; mount %[1]s %[2]s", s.device("a"), at))
	for name, err := range map[string]error{
		"register": s.nodes["a"].Register(t.Context(), disk, key("a", 2), shared.Idle),
		"flush":    s.nodes["a"].Flush(t.Context(), disk),
		"detach":   s.nodes["a"].Detach(t.Context(), disk),
	} {
		if !errors.Is(err, provision.ErrInUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	sh(t, "echo data > "+at+"/file; umount "+at+"; udevadm settle")
	s.must(s.nodes["a"].Flush(t.Context(), disk))
	s.must(s.nodes["a"].Detach(t.Context(), disk))
	if left := sh(t, "iscsiadm -m node || test $? = 21"); left != "" {
		t.Errorf("these records of open-iscsi are left: %s", left)
	}
}

func TestATwinOfADiskIsRefused(t *testing.T) {
	s := newSAN(t)
	s.attach("a")
	sh(t, fmt.Sprintf("iscsiadm -m node -T %[1]s -p %[2]s -I a -o new; iscsiadm -m node -T %[1]s -p %[2]s -I a -o update -n node.session.nr_sessions -v 2; iscsiadm -m node -T %[1]s -p %[2]s -I a --login; udevadm settle", targetName, portal))
	if _, err := s.nodes["a"].Look(t.Context(), disk); !errors.Is(err, provision.ErrUnsupported) {
		t.Errorf("a disk with two sessions: %v", err)
	}
}

// The node that had the reservation is off while the target loses its power and another node takes the disk.
func TestATargetBringsAReservationBackThatWasTakenIfItsNodeHasNoACL(t *testing.T) {
	for name, test := range map[string]struct {
		dynamic         bool
		restarted, back ownership.RawKey
	}{
		"with an ACL":    {false, key("a", 1), key("b", 2)},
		"without an ACL": {true, 0, key("a", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSAN(t)
			s.target.stop()
			s.target.dynamic = test.dynamic
			s.target.start()
			s.attach("a", "b")
			s.take("a", 0, key("a", 1))
			sh(t, "iscsiadm -m session -r "+strings.TrimPrefix(filepath.Base(s.session("a")), "session")+" --logout; udevadm settle")
			s.restart()
			s.holds(test.restarted)
			s.take("b", test.restarted, key("b", 2))
			s.attach("a")
			s.holds(test.back)
			s.must(s.nodes["b"].Reserve(t.Context(), disk, test.back, key("b", 2)))
			s.holds(key("b", 2))
		})
	}
}

// holds expects that node b sees a holder of the reservation.
func (s *san) holds(want ownership.RawKey) {
	s.t.Helper()
	if v, err := s.nodes["b"].Look(s.t.Context(), disk); err != nil || v.Holder != want {
		s.t.Errorf("the disk is reserved for %#x, %v, want %#x", uint64(v.Holder), err, uint64(want))
	}
}

// TestATargetThatAsksForAPasswordGetsThatOfTheMachine: open-iscsi takes it from its own configuration.
func TestATargetThatAsksForAPasswordGetsThatOfTheMachine(t *testing.T) {
	s := newSAN(t)
	s.target.asks("a", password{"name-of-a", "secret-of-a"}, password{"name-of-target", "secret-of-target"})
	for name, configured := range map[string][2]password{
		"none":                             {},
		"another one of the node":          {{"name-of-a", "other-secret"}, {"name-of-target", "secret-of-target"}},
		"another one of the target itself": {{"name-of-a", "secret-of-a"}, {"name-of-target", "other-secret"}},
	} {
		machineHas(t, configured[0], configured[1])
		s.must(s.nodes["a"].Attach(t.Context(), disk))
		s.nodes["a"].Wait()
		v, err := s.nodes["a"].Look(t.Context(), disk)
		s.must(err)
		if v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "/etc/iscsi/iscsid.conf") {
			t.Errorf("with the password %q the disk is %v: %s", name, v.Link, v.Problem)
		}
		if s.session("a") != "" {
			t.Fatalf("with the password %q there is a session", name)
		}
	}
	machineHas(t, password{"name-of-a", "secret-of-a"}, password{"name-of-target", "secret-of-target"})
	s.attach("a")
	s.take("a", 0, key("a", 1))
	d := s.open("a")
	defer d.Close()
	s.must(d.Write("1"))
}
