package lvm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

var errCrash = errors.New("the process ends here")

// crash ends a process at one of its effects. Each command has two effects, one before it and
// one after it. A dead process starts no other command.
type crash struct {
	mu       sync.Mutex
	at, seen int
}

func (c *crash) effect() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen < c.at {
		c.seen++
	}
	if c.seen == c.at {
		return errCrash
	}
	return nil
}

func (c *crash) dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen == c.at
}

func (c *crash) around(command run.Command, do func() ([]byte, error)) (out []byte, err error) {
	if command.Operation == "fullreport" { // reading has no effect
		if c.dead() {
			return nil, errCrash
		}
		return do()
	}
	if err := c.effect(); err != nil {
		return nil, err
	}
	if out, err = do(); err != nil {
		return out, err
	}
	return out, c.effect()
}

// deed is an idempotent step of a story.
type deed func(ctx context.Context, host *lvmtest.Host, p provision.Full) error

func carve(r provision.CreateRequest) deed {
	return func(ctx context.Context, _ *lvmtest.Host, p provision.Full) error {
		v, err := p.Create(ctx, r)
		if err == nil && (v.Copying || v.Size != r.Size || v.Source != r.Source) {
			err = fmt.Errorf("asked for %+v, made %+v", r, v)
		}
		return err
	}
}

func fill(id, content string) deed {
	return func(_ context.Context, host *lvmtest.Host, _ provision.Full) error {
		host.On("/dev/vg-a/"+id, func(v *lvmtest.Volume) { v.Content = content })
		return nil
	}
}

func snap(id, volume string) deed {
	return func(ctx context.Context, _ *lvmtest.Host, p provision.Full) error {
		s, err := p.Snapshot(ctx, provision.SnapshotRequest{ID: id, Volume: volume})
		if err == nil && (s.Volume != volume || s.Size != 2*unit || s.Problem != "") {
			err = fmt.Errorf("took %+v", s)
		}
		return err
	}
}

func copyOf(id string, units int64, source provision.Source) provision.CreateRequest {
	r := requestIn(thin, id, units)
	r.Source = source
	return r
}

var story = []deed{
	carve(requestIn(thin, "pvc-1", 2)),
	fill("pvc-1", "old"),
	snap("snap-1", "pvc-1"),
	fill("pvc-1", "new"),
	carve(copyOf("pvc-2", 4, provision.Source{Snapshot: "snap-1"})),
	carve(copyOf("pvc-3", 2, provision.Source{Volume: "pvc-1"})),
	func(ctx context.Context, _ *lvmtest.Host, p provision.Full) error { return p.Delete(ctx, "pvc-1") },
	carve(copyOf("pvc-4", 2, provision.Source{Snapshot: "snap-1"})),
	func(ctx context.Context, _ *lvmtest.Host, p provision.Full) error {
		return p.DeleteSnapshot(ctx, "snap-1")
	},
}

// live goes on with the story and returns the index of the step that failed, or the number of steps.
func live(t *testing.T, host *lvmtest.Host, p provision.Full, from int) (next int, err error) {
	for next = from; next < len(story); next++ {
		if err := story[next](t.Context(), host, p); err != nil {
			return next, err
		}
	}
	return next, nil
}

// whole fails if a volume is reported as whole and does not have the size that is reported.
func whole(t *testing.T, host *lvmtest.Host, p provision.Provisioner) {
	t.Helper()
	for _, v := range poolOf(t, p, thin).Volumes {
		host.On(v.Content.Source, func(lv *lvmtest.Volume) {
			if got := lv.Extents * unit; got != v.Size && !v.Copying {
				t.Errorf("%+v has %d bytes", v, got)
			}
		})
	}
}

func TestAProcessMayEndAtAnyEffectOfSnapshotsAndCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at := 1; ; at++ {
			host := thinHost()
			dying := &crash{at: at}
			host.Around = dying.around
			_, c := counted(host)
			p, stop := start(t, c)
			next, err := live(t, host, p, 0)
			stop()
			if err == nil {
				if effects := 2 * 9; at != effects+1 {
					t.Errorf("the story has %d effects, want %d", at-1, effects)
				}
				return
			}
			if !dying.dead() {
				t.Fatalf("effect %d: %v", at, err)
			}
			host.Around = nil
			p, stop = start(t, c)
			whole(t, host, p)
			if _, err := live(t, host, p, next); err != nil {
				t.Errorf("effect %d: the story does not go on at %d: %v", at, next, err)
			}
			checkEnd(t, host, p)
			stop()
			if t.Failed() {
				t.Fatalf("crashed at effect %d", at)
			}
		}
	})
}

// checkEnd fails unless the pool is as the end of the story leaves it.
func checkEnd(t *testing.T, host *lvmtest.Host, p provision.Provisioner) {
	t.Helper()
	whole(t, host, p)
	pool := poolOf(t, p, thin)
	if len(pool.Volumes) != 3 || len(pool.Snapshots) != 0 || pool.Foreign != 0 || pool.Free != 92*unit {
		t.Errorf("left is %+v", pool)
	}
	for id, want := range map[string]string{"pvc-2": "old", "pvc-3": "new", "pvc-4": "old"} {
		host.On("/dev/vg-a/"+id, func(v *lvmtest.Volume) {
			if v == nil || v.Content != want || v.ReadOnly || !v.Active {
				t.Errorf("%s is %+v, want it to hold %q", id, v, want)
			}
		})
	}
}
