package zfs_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

// slow is a machine on which the device of a zvol can hang when it is opened.
type slow struct {
	*zfstest.Host
	mu   sync.Mutex
	hung chan struct{}
}

func (s *slow) hang() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.hung = held
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hung = nil
		close(held)
	})
}

func (s *slow) waiting(dataset string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if zpool, _, _ := strings.Cut(dataset, "/"); zpool != "tank" {
		return nil
	}
	return s.hung
}

func (s *slow) Locate(ctx context.Context, dataset string) error {
	if held := s.waiting(dataset); held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return s.Host.Locate(ctx, dataset)
}

func TestAZpoolThatHangsHoldsUpNoOther(t *testing.T) {
	conformance.RunHangs(t, func(t *testing.T) conformance.Two {
		host := zfstest.NewHost(map[string]int64{"tank": 1 << 30, "other": 1 << 30})
		s := &slow{Host: host}
		host.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			if held := s.waiting(c.Args[len(c.Args)-1]); held != nil {
				<-held // nor can it be killed
			}
			return do()
		}
		return conformance.Two{
			Hangs: provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"},
			Works: provision.PoolRef{Type: provision.ZFS, Name: "zfs:other"},
			Start: func() (provision.Provisioner, func(context.Context) error) {
				c := config(host)
				c.Devices, c.RefreshInterval = s, 0
				p, err := zfs.New(c)
				if err != nil {
					t.Fatal(err)
				}
				return p, p.Run
			},
			Hang:  func(conformance.Moment) func() { return s.hang() },
			Touch: func() { host.PutForeign("tank/theirs", unit) },
			Take:  func() { host.PutForeign("other/theirs", unit) },
		}
	})
}
