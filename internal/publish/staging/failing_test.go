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
		"the format fails while the volume is staged": {"format", func(ctx context.Context, n *node) error {
			return n.Stage(ctx, StageRequest{ID: blank, Path: n.path("stage-" + blank)})
		}},
		"the mount fails while the volume is staged": {"mount", func(ctx context.Context, n *node) error {
			return n.Stage(ctx, StageRequest{ID: blank, Path: n.path("stage-" + blank)})
		}},
		"the growth fails while the volume is staged again": {"grow", func(ctx context.Context, n *node) error {
			return n.Stage(ctx, StageRequest{ID: id, Path: n.path("stage-" + id)})
		}},
		"the record fails while a raw block volume is staged": {"format", func(ctx context.Context, n *node) error {
			return n.Stage(ctx, StageRequest{ID: other, Path: n.path("stage-" + other), Block: true})
		}},
		"the unmount fails while the volume is unstaged":    {"unmount", func(ctx context.Context, n *node) error { return n.Unstage(ctx, id, n.path("stage-"+id)) }},
		"the unmount fails while the volume is unpublished": {"unmount", func(ctx context.Context, n *node) error { return n.Unpublish(ctx, id, n.path("pod1")) }},
		"the mount table fails while the volume is published for one pod": {"table", func(ctx context.Context, n *node) error {
			r := n.publication(id, "pod2")
			r.Exclusive = true
			return n.Publish(ctx, r)
		}},
		"the filesystem fails while figures are read":  {"stats", figures},
		"the mount table fails while figures are read": {"table", figures},
		"the filesystem fails while the volume grows":  {"grow", grown},
		"the mount table fails while the volume grows": {"table", grown},
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
