package staging

import (
	"errors"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/provision"
)

func TestNoCallTouchesAPathOutside(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	outside := filepath.Join(t.TempDir(), "x")
	r := n.publication(id, "pod1")
	r.Target = outside
	escape := n.publication(id, "pod1")
	escape.StagingPath = outside
	for call, err := range map[string]error{
		"stage":        n.Stage(t.Context(), StageRequest{ID: id, Path: outside}),
		"unstage":      n.Unstage(t.Context(), id, outside),
		"publish":      n.Publish(t.Context(), r),
		"publish from": n.Publish(t.Context(), escape),
		"unpublish":    n.Unpublish(t.Context(), id, outside),
	} {
		if !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("%s: %v; want %v", call, err, provision.ErrInvalid)
		}
	}
	if exists(outside) {
		t.Error("something was made outside")
	}
}
