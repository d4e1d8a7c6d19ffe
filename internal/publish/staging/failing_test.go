package staging

import (
	"context"
	"errors"
	"slices"
	"testing"

	"berth.dev/berth/internal/provision"
)

var errBroken = errors.New("the disk is broken")

// running is a node with a volume that is staged and published as a filesystem, and another
// one that an older Berth published as a raw block volume.
func running(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	n.publish(t, id, "pod1")
	n.volume(t, other, "")
	n.publish(t, other, "dev1")
	return n
}

func TestAFailedStepIsReportedAndEndsTheCall(t *testing.T) {
	const blank = "pvc-00000000-0000-0000-0000-000000000003"
	for name, tc := range map[string]struct {
		operation string
		call      func(context.Context, *node) error
	}{
		"staging, the filesystem is not made": {"format", func(ctx context.Context, n *node) error {
			return n.Stage(ctx, StageRequest{ID: blank, Path: n.path("stage-" + blank)})
		}},
		"staging, nothing is mounted": {"mount", func(ctx context.Context, n *node) error {
			return n.Stage(ctx, StageRequest{ID: blank, Path: n.path("stage-" + blank)})
		}},
		"staging again, the filesystem does not grow": {"grow", func(ctx context.Context, n *node) error {
			return n.Stage(ctx, StageRequest{ID: id, Path: n.path("stage-" + id)})
		}},
		"staging a raw block volume that a pod has, nothing is recorded": {"format", func(ctx context.Context, n *node) error {
			return n.Stage(ctx, StageRequest{ID: other, Path: n.path("stage-" + other), Block: true})
		}},
		"unstaging, it stays mounted":    {"unmount", func(ctx context.Context, n *node) error { return n.Unstage(ctx, id, n.path("stage-"+id)) }},
		"unpublishing, it stays mounted": {"unmount", func(ctx context.Context, n *node) error { return n.Unpublish(ctx, id, n.path("pod1")) }},
		"publishing for one pod, the mount table is not read": {"table", func(ctx context.Context, n *node) error {
			r := n.publication(id, "pod2")
			r.Exclusive = true
			return n.Publish(ctx, r)
		}},
		"figures, of the filesystem":  {"stats", figures},
		"figures, of the mount table": {"table", figures},
		"growing, of the filesystem":  {"grow", grown},
		"growing, of the mount table": {"table", grown},
	} {
		t.Run(name, func(t *testing.T) {
			n := running(t)
			n.volume(t, blank, "ext4")
			n.fails[tc.operation] = errBroken
			if err := tc.call(t.Context(), n); !errors.Is(err, errBroken) || errors.Is(err, provision.ErrNotFound) {
				t.Errorf("error %v; want %v", err, errBroken)
			}
			got, want := n.mounts.Mounts(n.record(t, id).Content.Source), []string{n.path("pod1"), n.path("stage-" + id)}
			if !slices.Equal(got, want) || !exists(n.path("pod1")) {
				t.Errorf("it is mounted at %v; want %v", got, want)
			}
			if got := n.mounts.Mounts(n.record(t, blank).Content.Source); len(got) > 0 {
				t.Errorf("what was not staged is mounted at %v", got)
			}
		})
	}
}

func figures(ctx context.Context, n *node) error {
	_, err := n.Stats(ctx, id, n.path("pod1"))
	return err
}

func grown(ctx context.Context, n *node) error {
	_, err := n.Expand(ctx, id, n.path("pod1"), 64*mib)
	return err
}

func TestAVolumeThatIsUnmountedMeanwhileIsNotFound(t *testing.T) {
	for name, call := range map[string]func(context.Context, *node) error{"figures": figures, "growing": grown} {
		t.Run(name, func(t *testing.T) {
			n := running(t)
			n.meanwhile = func() {
				if err := n.mounts.Unmount(t.Context(), n.path("pod1")); err != nil {
					t.Error(err)
				}
			}
			if err := call(t.Context(), n); !errors.Is(err, provision.ErrNotFound) {
				t.Errorf("error %v; want %v", err, provision.ErrNotFound)
			}
		})
	}
}
