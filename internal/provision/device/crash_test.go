package device_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device/devicetest"
)

const secret = "what nobody else may read"

// story is the life of a volume on a disk, and the answers that its user got so far.
type story struct {
	t    *testing.T
	node *node
	// made, formatted and deleted were answered with success; ended says that the disk
	// was free again.
	made, formatted, deleted, ended bool
	// unwanted is set once its user began to delete it.
	unwanted bool
}

// live goes on with the life, until something fails.
func (s *story) live(ctx context.Context) error {
	if !s.unwanted {
		v, err := s.node.Create(ctx, provision.CreateRequest{ID: id, Pool: pool("naa.a"), Size: 1})
		if err != nil {
			return err
		}
		s.made = true
		s.node.machine.WritePartition(v.Content.Source, secret)
		if _, err := s.node.Format(ctx, provision.FormatRequest{ID: id, Filesystem: provision.XFS}); err != nil {
			return err
		}
		s.formatted = true
	}
	s.unwanted = true
	if err := s.node.Delete(ctx, id); err != nil {
		return err
	}
	s.deleted = true
	return s.wiped(ctx)
}

// wiped waits until the disk is free, or has a problem.
func (s *story) wiped(ctx context.Context) error {
	for {
		switch p := s.node.report(s.t, pool("naa.a")); {
		case p == nil:
			return errors.New("the disk is not reported")
		case p.Problem == "":
			s.ended = true
			return nil
		case !strings.Contains(p.Problem, "wiped"):
			return errors.New(p.Problem)
		}
		select {
		case <-s.node.Changed():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// check compares the state after a crash with the answers before it.
func (s *story) check() {
	s.t.Helper()
	v, err := s.node.Get(s.t.Context(), id)
	switch {
	case s.deleted && !errors.Is(err, provision.ErrNotFound):
		s.t.Errorf("a volume that was deleted is there: %+v, %v", v, err)
	case s.made && !s.unwanted && err != nil:
		s.t.Errorf("a volume that was made: %v", err)
	case err == nil && v.Problem != "":
		s.t.Errorf("a volume has a problem: %+v", v)
	case err == nil && s.formatted && v.Filesystem != provision.XFS:
		s.t.Errorf("a volume that was formatted: %+v", v)
	}
	p := s.node.report(s.t, pool("naa.a"))
	switch {
	case p == nil:
		s.t.Error("the disk is not reported")
	case err == nil && len(p.Volumes) != 1:
		s.t.Errorf("a volume that is there is not reported: %+v", p)
	case p.Problem != "" && !strings.Contains(p.Problem, "wiped"):
		s.t.Errorf("the disk has a problem: %+v", p)
	}
}

// A process that ends at any effect, with the machine or alone, leaves a disk from which
// the next process goes on. No answer becomes untrue, and no byte of the volume is left in
// the end.
func TestAProcessMayEndAtAnyEffect(t *testing.T) {
	t.Run("a disk discards", func(t *testing.T) { endsAnywhere(t, func(*devicetest.Machine) {}) })
	t.Run("a disk is overwritten", func(t *testing.T) { endsAnywhere(t, func(m *devicetest.Machine) { m.Plain("sda") }) })
}

func endsAnywhere(t *testing.T, prepare func(*devicetest.Machine)) {
	for _, reboot := range []bool{false, true} {
		for at := 0; ; at++ {
			m := devicetest.NewMachine(devicetest.Disk("sda", "naa.a", diskSize))
			prepare(m)
			s := &story{t: t, node: start(t, m)}
			m.CrashAfter(at)
			_ = s.live(t.Context())
			before := *s
			s.node.stop()
			effects := m.Live()
			if reboot {
				m.Reboot()
			}
			s.node = start(t, m)
			s.check()
			if err := s.live(t.Context()); err != nil || !s.ended {
				t.Errorf("a crash after effect %d, with a reboot %v, told %+v: the life does not go on: %v", at, reboot, before, err)
			}
			if s.node.stop(); m.Medium("sda").Used() {
				t.Errorf("a crash after effect %d, with a reboot %v: the disk that was given back is not empty", at, reboot)
			}
			if t.Failed() {
				t.Fatalf("crashed after effect %d, with a reboot %v", at, reboot)
			}
			if before.ended {
				t.Logf("%d effects", effects)
				break
			}
		}
	}
}

// A volume that was begun is deleted like any other, and its disk serves another volume.
func TestADiskServesAnotherVolumeWhereverTheFirstOneStopped(t *testing.T) {
	for at := range 7 {
		m := devicetest.NewMachine(devicetest.Disk("sda", "naa.a", diskSize))
		n := start(t, m)
		m.CrashAfter(at)
		_, _ = n.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool("naa.a"), Size: 1})
		n.stop()
		m.Live()
		n = start(t, m)
		other := provision.CreateRequest{ID: "pvc-other", Pool: pool("naa.a"), Size: 1}
		_, err := n.Create(t.Context(), other)
		if at == 0 && err != nil || at > 0 && !errors.Is(err, provision.ErrNoSpace) {
			t.Errorf("after %d effects of another volume: %v", at, err)
		}
		n.delete(t, id)
		n.delete(t, other.ID)
		n.await(t, pool("naa.a"), "a free disk", free)
		n.create(t, other.ID, pool("naa.a"))
		n.stop()
	}
}

func TestNoVolumeHoldsDataOfAnother(t *testing.T) {
	m := disks()
	n := start(t, m)
	for round := range 20 {
		v := n.create(t, fmt.Sprintf("pvc-%d", round), pool("naa.b"))
		m.Medium("sdb").Put([]byte(secret), mib+v.Size-int64(len(secret))-int64(round)*4096)
		m.WritePartition(v.Content.Source, secret)
		n.delete(t, v.ID)
		n.await(t, pool("naa.b"), "a free disk", free)
		if m.Medium("sdb").Used() {
			t.Fatalf("round %d left something", round)
		}
	}
}
