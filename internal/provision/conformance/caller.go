package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
)

func givesUp(t *testing.T, f fixture) {
	// The patience varies so that the caller leaves at different moments.
	for patience := time.Microsecond; patience < time.Second; patience *= 8 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := f.Provisioner.Create(ctx, f.request(1, filesystemUnits))
		if err == nil {
			_, err = f.Provisioner.Format(ctx, provision.FormatRequest{ID: id(1), Filesystem: f.native()})
		}
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v, want the context's error", patience, err)
		}
		// Whatever happened, the next call sees it and goes on from there.
		v := f.create(t, 1, filesystemUnits)
		f.format(t, 1, f.native())
		v.Filesystem = f.native()
		f.holds(t, v)

		ctx, cancel = context.WithTimeout(t.Context(), patience)
		err = f.Provisioner.Delete(ctx, id(1))
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v, want the context's error", patience, err)
		}
		f.delete(t, 1)
		f.holds(t)
	}
}

func goneAlready(t *testing.T, f fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Provisioner.Create(ctx, f.request(1, 1))
	wantError(t, err, context.Canceled)
	wantError(t, f.Provisioner.Delete(ctx, id(1)), context.Canceled)
	f.holds(t)
}

func restarts(t *testing.T, f fixture) {
	a := f.create(t, 1, 2)
	b := f.create(t, 2, filesystemUnits)
	f.format(t, 2, f.native())
	b.Filesystem = f.native()
	before := f.pool(t)

	f.Provisioner = f.Restart()
	f.holds(t, a, b)
	if got := f.get(t, 2); got != b {
		t.Errorf("after the restart %+v, before %+v", got, b)
	}
	if after := f.pool(t); after.Total != before.Total || after.Free != before.Free || after.Foreign != before.Foreign {
		t.Errorf("after the restart %+v, before %+v", after, before)
	}
	if again := f.create(t, 1, 2); again != a {
		t.Errorf("creating what exists after the restart: %+v, want %+v", again, a)
	}
}

// A receiver of the signal that asks for a report sees the change. A signal may also come
// without a change.
func signals(t *testing.T, f fixture) {
	for name, change := range map[string]struct {
		do    func()
		shown func(provision.Pool) bool
	}{
		"own":     {func() { f.create(t, 1, 1) }, func(p provision.Pool) bool { return len(p.Volumes) == 1 }},
		"foreign": {func() { f.PutForeign("theirs", f.unit) }, func(p provision.Pool) bool { return p.Foreign >= f.unit }},
	} {
		quiet(f.Provisioner.Changed())
		change.do()
		timeout := time.After(30 * time.Second)
		for shown := false; !shown; {
			select {
			case <-f.Provisioner.Changed():
				shown = change.shown(f.pool(t))
			case <-timeout:
				t.Fatalf("%s change was not signalled and shown: %+v", name, f.pool(t))
			}
		}
	}
}

// quiet drops the signals that are already pending.
func quiet(changed <-chan struct{}) {
	for {
		select {
		case <-changed:
		default:
			return
		}
	}
}
