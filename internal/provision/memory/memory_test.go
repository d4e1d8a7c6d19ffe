package memory_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
)

var pool = provision.PoolRef{Type: "LVM", Name: "vg"}

const unit = 4 << 20

func TestConformance(t *testing.T) {
	conformance.Run(t, harness)
}

func TestConformanceOfSnapshots(t *testing.T) {
	conformance.RunSnapshots(t, harness)
}

func TestNoVolumeShowsDataOfAnother(t *testing.T) {
	conformance.RunForgets(t, harness)
}

func TestConformanceOfDatasets(t *testing.T) { conformance.Run(t, datasets) }

func TestConformanceOfDatasetSnapshots(t *testing.T) { conformance.RunSnapshots(t, datasets) }

func datasets(t *testing.T) conformance.Harness {
	h := harnessOn(t, provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + "tank"})
	h.Filesystem = provision.Dataset
	return h
}

func harness(t *testing.T) conformance.Harness { return harnessOn(t, pool) }

func harnessOn(t *testing.T, pool provision.PoolRef) conformance.Harness {
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 100 * unit})
	p := memory.New(disks, nil)
	return conformance.Harness{
		Provisioner: p,
		Pool:        pool,
		Restart: func() provision.Provisioner {
			p.Wait()
			p = memory.New(disks, nil)
			return p
		},
		PutForeign: func(name string, size int64) {
			if err := disks.PutForeign(pool, name, size); err != nil {
				t.Fatal(err)
			}
		},
		Open:     func(v provision.Volume) func() { return disks.Open(v.ID) },
		Scramble: func(provision.Volume) {},
		Formats:  disks.Formats,
		Write:    func(v provision.Volume, text string) { disks.Write(v.ID, text) },
		Read:     func(v provision.Volume, bytes int) string { return disks.Read(v.ID)[:bytes] },
		WriteAt: func(v provision.Volume, text string, offset int64) {
			content := extended(disks.Read(v.ID), offset+int64(len(text)))
			copy(content[offset:], text)
			disks.Write(v.ID, string(content))
		},
		ReadAt: func(v provision.Volume, bytes int, offset int64) string {
			return string(extended(disks.Read(v.ID), offset+int64(bytes))[offset:][:bytes])
		},
	}
}

// extended returns a content padded with zeros to size bytes.
func extended(content string, size int64) []byte {
	return append([]byte(content), make([]byte, max(size-int64(len(content)), 0))...)
}

// script is a disturbance made of functions.
type script struct {
	before, after func(memory.Operation) error
}

func (s script) Before(_ context.Context, op memory.Operation, _ string) error { return s.before(op) }
func (s script) After(_ context.Context, op memory.Operation, _ string) error  { return s.after(op) }

func none(memory.Operation) error { return nil }

func request() provision.CreateRequest {
	return provision.CreateRequest{ID: "pvc-1", Pool: pool, Size: unit}
}

func TestFaultBeforeAChangeLeavesNothing(t *testing.T) {
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 10 * unit})
	boom := errors.New("boom")
	p := memory.New(disks, script{before: func(op memory.Operation) error {
		if op == memory.Create {
			return boom
		}
		return nil
	}, after: none})
	if _, err := p.Create(t.Context(), request()); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	if _, err := p.Get(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("the volume is there: %v", err)
	}
}

func TestLostAnswerLeavesTheChangeMade(t *testing.T) {
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 10 * unit})
	boom := errors.New("boom")
	lossy := memory.New(disks, script{before: none, after: func(memory.Operation) error { return boom }})
	if _, err := lossy.Create(t.Context(), request()); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	if _, err := memory.New(disks, nil).Get(t.Context(), "pvc-1"); err != nil {
		t.Errorf("the volume is not there: %v", err)
	}
}

func TestCallerThatLeavesASlowChangeFindsItDoneLater(t *testing.T) {
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 10 * unit})
	begun, release := make(chan struct{}), make(chan struct{})
	p := memory.New(disks, script{before: func(op memory.Operation) error {
		if op == memory.Create {
			close(begun)
			<-release
		}
		return nil
	}, after: none})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := p.Create(ctx, request()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	<-begun
	cancel()
	wg.Wait()
	close(release)
	p.Wait()
	if _, err := p.Get(t.Context(), "pvc-1"); err != nil {
		t.Errorf("the change was dropped: %v", err)
	}
}

func TestOperationsOnOneVolumeWaitForEachOtherAndWaitersMayLeave(t *testing.T) {
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 10 * unit})
	begun, release := make(chan struct{}), make(chan struct{})
	p := memory.New(disks, script{before: func(op memory.Operation) error {
		if op == memory.Create {
			close(begun) // a second one at the same time would panic
			<-release
		}
		return nil
	}, after: none})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := p.Create(t.Context(), request()); err != nil {
			t.Error(err)
		}
	})
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := p.Delete(ctx, "pvc-1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deleting what is being created: %v, want the context's error", err)
	}
	close(release)
	wg.Wait()
	if _, err := p.Get(t.Context(), "pvc-1"); err != nil {
		t.Errorf("the delete that left the queue was done: %v", err)
	}
}

func TestPoolsThatComeGoAndFailAreReported(t *testing.T) {
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 10 * unit})
	p := memory.New(disks, nil)
	disks.SetProblem(pool, "a disk is missing")
	if _, err := p.Create(t.Context(), request()); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("creating in a damaged pool: %v", err)
	}
	disks.SetProblem(pool, "")
	if _, err := p.Create(t.Context(), request()); err != nil {
		t.Errorf("creating in a repaired pool: %v", err)
	}
	disks.RemovePool(pool)
	if report, err := p.Report(t.Context()); err != nil || len(report) != 0 {
		t.Errorf("a pool that went is reported: %+v, %v", report, err)
	}
}

func TestLabelsAreKeptWithTheVolume(t *testing.T) {
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 10 * unit})
	r := request()
	r.Labels = map[string]string{"claim": "data"}
	if _, err := memory.New(disks, nil).Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got := disks.Labels("pvc-1"); got["claim"] != "data" {
		t.Errorf("labels %v", got)
	}
}
