package staging

import (
	"context"
	"errors"
	"slices"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func TestAConfinedMounterTouchesNothingOutside(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	if err := n.Unstage(t.Context(), id, n.path("stage-"+id)); err != nil {
		t.Fatal(err)
	}
	m, v := Confine(n.dir, disturbed{n, n.pool, n.mounts}), n.record(t, id)
	staged := n.path("stage-" + id)
	for _, call := range []struct {
		name  string
		at    func(ctx context.Context, target string) error
		where string
		want  []string // where it is mounted after that
	}{
		{"mount", func(ctx context.Context, target string) error {
			return m.Mount(ctx, mount.Request{Content: v.Content, Target: target, Filesystem: "ext4"})
		}, staged, []string{staged}},
		{"bind", func(ctx context.Context, target string) error {
			return m.Bind(ctx, mount.BindRequest{Content: v.Content, Source: staged, Target: target})
		}, n.path("pod1"), []string{n.path("pod1"), staged}},
		{"grow", func(ctx context.Context, target string) error {
			clear(n.grown)
			return m.Grow(ctx, mount.GrowRequest{Content: v.Content, Target: target, Filesystem: "ext4"})
		}, staged, []string{n.path("pod1"), staged}},
		{"trim", func(ctx context.Context, target string) error {
			_, err := m.Trim(ctx, mount.TrimRequest{Content: v.Content, Target: target, Length: mib})
			return err
		}, staged, []string{n.path("pod1"), staged}},
		{"unmount", m.Unmount, staged, []string{n.path("pod1")}},
	} {
		if err := call.at(t.Context(), "/srv/data"); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("%s outside: %v; want %v", call.name, err, provision.ErrInvalid)
		}
		if err := call.at(t.Context(), call.where); err != nil {
			t.Errorf("%s inside: %v", call.name, err)
		}
		if got := n.mounts.Mounts(v.Content.Source); !slices.Equal(got, call.want) {
			t.Errorf("%s inside: it is mounted at %v; want %v", call.name, got, call.want)
		}
	}
	if !n.grown[v.Content.Source] {
		t.Error("it was not grown")
	}
}
