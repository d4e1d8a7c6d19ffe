package staging

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func TestAConfinedMounterTouchesNothingOutside(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	m, ctx, outside := Confine(n.dir, n.mounts), t.Context(), "/srv/data"
	v := n.record(t, id)
	calls := map[string]func(context.Context, string) error{
		"mount": func(ctx context.Context, target string) error {
			return m.Mount(ctx, mount.Request{Device: v.Device, Identity: v.Identity, Target: target, Filesystem: "ext4"})
		},
		"bind": func(ctx context.Context, target string) error {
			return m.Bind(ctx, mount.BindRequest{Device: v.Device, Identity: v.Identity, Source: n.path("stage-" + id), Target: target})
		},
		"grow": func(ctx context.Context, target string) error {
			return m.Grow(ctx, mount.GrowRequest{Device: v.Device, Identity: v.Identity, Target: target, Filesystem: "ext4"})
		},
		"unmount": m.Unmount,
	}
	for _, call := range []string{"mount", "bind", "grow", "unmount"} {
		if err := calls[call](ctx, outside); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("%s outside: %v; want %v", call, err, provision.ErrInvalid)
		}
		if err := calls[call](ctx, n.path("stage-"+id)); call != "bind" && err != nil {
			t.Errorf("%s inside: %v", call, err)
		}
	}
}
