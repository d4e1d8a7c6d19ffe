package poold_test

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

	"berth.dev/berth/internal/mount"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

var pool = provision.PoolRef{Type: "LVM", Name: "vg"}

const unit = 4 << 20

func newDisks() *memory.Disks {
	return memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 1000 * unit})
}

func localNode(d *memory.Disks) poold.Node {
	return poold.NewLocal(memory.New(d, nil), mountmemory.New(d))
}

// serve runs poold until the test or the returned stop ends it.
func serve(t *testing.T, c poold.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := poold.Run(ctx, c); err != nil {
			t.Errorf("poold: %v", err)
		}
	})
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

// socket is short enough for a unix address.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "poold")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s", "poold.sock")
}

func dial(t *testing.T, socket string) *poold.Client {
	t.Helper()
	c, err := poold.Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// connected dials and waits until poold answers.
func connected(t *testing.T, socket string) *poold.Client {
	t.Helper()
	c := dial(t, socket)
	select {
	case <-c.Changed():
	case <-time.After(20 * time.Second):
		t.Fatal("poold does not answer")
	}
	return c
}

// failing is a node whose every call fails with one error.
type failing struct {
	poold.Node
	err error
}

func (f failing) Get(context.Context, string) (provision.Volume, error) {
	return provision.Volume{}, f.err
}

func TestErrorClassesAndTextsCrossTheSocket(t *testing.T) {
	for _, class := range []error{
		provision.ErrNoSpace, provision.ErrNotFound, provision.ErrPoolMissing, provision.ErrConflict, provision.ErrInvalid, provision.ErrUnsupported,
		provision.ErrInUse, provision.ErrUnavailable, mount.ErrCorrupt, mount.ErrNotMounted, context.DeadlineExceeded,
	} {
		t.Run(class.Error(), func(t *testing.T) {
			s := socket(t)
			sent := fmt.Errorf("creating logical volume: %w (vg)", class)
			serve(t, poold.Config{Socket: s, Node: failing{localNode(newDisks()), sent}})
			_, err := connected(t, s).Get(t.Context(), "pvc-1")
			if !errors.Is(err, class) {
				t.Errorf("got %v, want class %v", err, class)
			}
			if !errors.Is(class, context.DeadlineExceeded) && err.Error() != sent.Error() {
				t.Errorf("text %q, want %q", err, sent)
			}
		})
	}
}

func TestErrorWithoutClassKeepsItsText(t *testing.T) {
	s := socket(t)
	serve(t, poold.Config{Socket: s, Node: failing{localNode(newDisks()), errors.New("lvcreate: exit code 5: strange")}})
	_, err := connected(t, s).Get(t.Context(), "pvc-1")
	if err == nil || err.Error() != "lvcreate: exit code 5: strange" || errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestPooldThatIsAwayIsUnavailableAndFoundAgain(t *testing.T) {
	s, d := socket(t), newDisks()
	c := dial(t, s)
	if _, err := c.Report(t.Context()); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("before poold is there: %v", err)
	}
	stop := serve(t, poold.Config{Socket: s, Node: localNode(d)})
	await(t, c.Changed())
	if _, err := c.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: pool, Size: unit}); err != nil {
		t.Errorf("with poold: %v", err)
	}
	stop()
	if _, err := c.Report(t.Context()); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("after poold went: %v", err)
	}
	drain(c.Changed())
	serve(t, poold.Config{Socket: s, Node: localNode(d)})
	await(t, c.Changed())
	if v, err := c.Get(t.Context(), "pvc-1"); err != nil || v.Size != unit {
		t.Errorf("when poold came back: %+v, %v", v, err)
	}
}

func TestPooldThatDoesNotSpeakIsUnavailable(t *testing.T) {
	s := socket(t)
	if err := os.MkdirAll(filepath.Dir(s), 0o700); err != nil {
		t.Fatal(err)
	}
	mute, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", s)
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	if _, err := dial(t, s).Report(ctx); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable well before the caller's deadline", err)
	}
}

func TestDeadlineReachesTheProvisioner(t *testing.T) {
	s, d := socket(t), newDisks()
	deadline := make(chan bool, 1)
	p := memory.New(d, disturbance(func(ctx context.Context) error {
		_, ok := ctx.Deadline()
		deadline <- ok
		return nil
	}))
	serve(t, poold.Config{Socket: s, Node: poold.NewLocal(p, mountmemory.New(d))})
	c := connected(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Report(ctx); err != nil || !<-deadline {
		t.Errorf("the provisioner saw no deadline, error %v", err)
	}
}

// partly is a node whose report returns the pools and also the error silent.
type partly struct {
	poold.Node
	silent error
}

func (p partly) Report(ctx context.Context) ([]provision.Pool, error) {
	pools, _ := p.Node.Report(ctx)
	return pools, p.silent
}

func TestAReportThatLacksPoolsKeepsTheOthersAndSaysWhichAreSilent(t *testing.T) {
	s := socket(t)
	serve(t, poold.Config{Socket: s, Node: partly{localNode(newDisks()), errors.New("the zpool tank hangs")}})
	pools, err := connected(t, s).Report(t.Context())
	if len(pools) != 1 || pools[0].PoolRef != pool {
		t.Errorf("reported %+v", pools)
	}
	if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "the zpool tank hangs") {
		t.Errorf("got %v, want what the provisioner said", err)
	}
}

type disturbance func(context.Context) error

func (d disturbance) Before(ctx context.Context, _ memory.Operation, _ string) error { return d(ctx) }
func (disturbance) After(context.Context, memory.Operation, string) error            { return nil }

func TestEveryWatchHearsEveryChange(t *testing.T) {
	s, d := socket(t), newDisks()
	serve(t, poold.Config{Socket: s, Node: localNode(d)})
	a, b := connected(t, s), connected(t, s)
	if err := d.PutForeign(pool, "theirs", unit); err != nil {
		t.Fatal(err)
	}
	await(t, a.Changed())
	await(t, b.Changed())
}

func TestSocketIsForItsOwnerAlone(t *testing.T) {
	s := socket(t)
	serve(t, poold.Config{Socket: s, Node: localNode(newDisks())})
	connected(t, s)
	info, err := os.Stat(s)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v, %v; want 0600", info.Mode(), err)
	}
}

func TestSecondPooldOnOneSocketIsRefusedAndADeadOneIsReplaced(t *testing.T) {
	s := socket(t)
	stop := serve(t, poold.Config{Socket: s, Node: localNode(newDisks())})
	connected(t, s)
	err := poold.Run(t.Context(), poold.Config{Socket: s, Node: localNode(newDisks())})
	if err == nil || !strings.Contains(err.Error(), s) {
		t.Errorf("the second poold: %v, want an error that names the socket", err)
	}
	stop()
	// Leave a socket behind, as a killed process does.
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: s, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	serve(t, poold.Config{Socket: s, Node: localNode(newDisks())})
	connected(t, s)
}

func TestHealthTellsWhetherPoolsCanBeManaged(t *testing.T) {
	s := socket(t)
	var mu sync.Mutex
	var problem error
	serve(t, poold.Config{Socket: s, Node: localNode(newDisks()), Healthy: func() error {
		mu.Lock()
		defer mu.Unlock()
		return problem
	}})
	c := connected(t, s)
	if err := c.Healthy(t.Context()); err != nil {
		t.Errorf("healthy: %v", err)
	}
	mu.Lock()
	problem = errors.New("lvm does not answer")
	mu.Unlock()
	if err := c.Healthy(t.Context()); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("unhealthy: %v", err)
	}
}

func TestPanicInOneCallLeavesTheOthers(t *testing.T) {
	s := socket(t)
	serve(t, poold.Config{Socket: s, Node: panicking{localNode(newDisks())}})
	c := connected(t, s)
	if _, err := c.Get(t.Context(), "pvc-1"); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Report(t.Context()); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

type panicking struct{ poold.Node }

func (panicking) Get(context.Context, string) (provision.Volume, error) { panic("broken") }

func await(t *testing.T, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(20 * time.Second):
		t.Fatal("no signal came")
	}
}

func drain(signal <-chan struct{}) {
	select {
	case <-signal:
	default:
	}
}
