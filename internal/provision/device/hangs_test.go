package device_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
)

// slow is a machine on which opening the partition of a disk can hang, as it does while the
// kernel reads the table of a disk that does not answer.
type slow struct {
	*devicetest.Machine
	mu   sync.Mutex
	hung map[string]chan struct{}
	// begun counts the openings that hang.
	begun int
}

func (s *slow) hang(path string) (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.hung = map[string]chan struct{}{path: held}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hung = nil
		close(held)
	})
}

func (s *slow) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

func (s *slow) Keep(path string) (io.Closer, error) {
	s.mu.Lock()
	held := s.hung[path]
	if held != nil {
		s.begun++
	}
	s.mu.Unlock()
	if held != nil {
		<-held
	}
	return s.Machine.Keep(path)
}

func slowly(t *testing.T, s *slow) *device.Provisioner {
	t.Helper()
	mkfs := &mkfs{machine: s.Machine}
	p, err := device.New(device.Config{Disks: s, Mkfs: mkfs.make})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestADiskThatHangsHoldsUpNoOtherPool(t *testing.T) {
	conformance.RunHangs(t, func(t *testing.T) conformance.Two {
		m := disks()
		s := &slow{Machine: m}
		return conformance.Two{
			Hangs: pool("naa.a"), Works: pool("naa.b"),
			Start: func() (provision.Provisioner, func(context.Context) error) {
				p := slowly(t, s)
				return p, p.Run
			},
			Hang: func(moment conformance.Moment) func() {
				if moment == conformance.AtOpen {
					return s.hang("/dev/sda1")
				}
				return m.Hang("sda")
			},
			Touch: func() { m.WriteDisk("sda", diskSize/2, "theirs") },
			// Others always take all of a disk.
			Take: func() { m.Fail("sdb", io.ErrUnexpectedEOF) },
		}
	})
}

func TestOpeningAPartitionThatHangsIsTriedByOneAndTheDiskIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := disks()
		n := start(t, m)
		n.create(t, "pvc-one", pool("naa.a"))
		n.stop()
		s := &slow{Machine: m}
		resume := s.hang("/dev/sda1")
		defer resume()
		p := slowly(t, s)
		stop := conformance.Watching(t, p.Run)
		if _, err := p.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		var asking sync.WaitGroup
		for range 5 {
			asking.Go(func() {
				if v, err := p.Get(t.Context(), "pvc-one"); err != nil || !strings.Contains(v.Problem, "does not answer") {
					t.Errorf("got %+v, %v; want a problem", v, err)
				}
			})
		}
		asking.Wait()
		if begun := s.attempts(); begun != 1 {
			t.Errorf("it was opened %d times at once, want once", begun)
		}
		if err := p.Healthy(); err == nil || !strings.Contains(err.Error(), "sda") {
			t.Errorf("health: %v", err)
		}
		stop() // the test hangs if that waits for the disk
		resume()
		synctest.Wait()
		if err := slowly(t, s).Delete(t.Context(), "pvc-one"); err != nil {
			t.Errorf("deleting when it answers again: %v; is it kept open?", err)
		}
	})
}
