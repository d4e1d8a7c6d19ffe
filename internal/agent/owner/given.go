package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/provision"
)

// A pod's containers keep what was mounted for the pod when they began. If the epoch of that mount ends while the pod
// runs, the pod has a dead mount to its end, whatever is mounted at its path later. Controllers end such a pod where
// the record says that its node does not own the volume. So this node must not become the owner again before that: a
// kubelet that begins anew has the volumes of all its pods staged and published once more, and the record would call
// the node the owner again, with a pod that reads and writes nothing. The node keeps at which paths pods got the
// volume, and asks about those pods before it begins another epoch.

// errDead says that a pod must end first.
var errDead = errors.New("its pod had the volume in an epoch that is over, and has a dead mount until it ends")

// lost are the paths of pods that got the volume in this boot, in an epoch that is over.
func (l *look) lost(boot string) (paths []string) {
	c := &l.facts.Copy
	for _, g := range l.kept.Given {
		if g.Boot == boot && (g.Epoch != c.Opened || c.GaveUp(c.Opened)) {
			paths = append(paths, g.Path)
		}
	}
	return paths
}

// dead is an error if a pod at one of the paths has begun without the volume, or that cannot be told.
func dead(ctx context.Context, w World, paths []string) error {
	if paths = w.There(paths); len(paths) == 0 {
		return nil
	}
	begun, err := w.Begun(ctx, paths)
	switch {
	case err != nil:
		return fmt.Errorf("%w: asking the API server for the pods that lost the volume: %w", provision.ErrUnavailable, err)
	case len(begun) > 0:
		return fmt.Errorf("%w: at %q: %w", provision.ErrUnavailable, begun, errDead)
	}
	return nil
}

// stranded says whether a kubelet asks for a volume while a pod of its node must end first. Then the rules are told
// that no pod wants the volume: they release the epoch that is over.
func (o actor) stranded(ctx context.Context, l *look, a *asking) bool {
	if !a.wanted {
		return false
	}
	err := dead(ctx, o.c.World, l.lost(o.c.Boot))
	if err == nil {
		return false
	}
	l.facts.Wanted, l.trouble = false, errors.Join(l.trouble, err)
	o.hinted(l.id, func(h *hint) { h.wanted = time.Time{} })
	return true
}

// give notes that a pod gets the volume at a path. A pod that lost it there and has not begun gets it anew.
func (o actor) give(ctx context.Context, l *look, path string) error {
	g := journal.Given{Path: path, Epoch: l.facts.Copy.Opened, Boot: o.c.Boot}
	if slices.Contains(l.kept.Given, g) {
		return nil
	}
	if slices.Contains(l.lost(o.c.Boot), path) {
		if err := dead(ctx, o.c.World, []string{path}); err != nil {
			return fmt.Errorf("volume %s: %w", l.id, err)
		}
		if err := o.c.World.Uncover(ctx, path); err != nil {
			return fmt.Errorf("%w: volume %s: uncovering the path of its pod: %w", provision.ErrUnavailable, l.id, err)
		}
	}
	return o.keep(l, func(k *journal.Kept) error {
		given := []journal.Given{g}
		for _, x := range k.Given {
			if x.Boot == g.Boot && x.Path != path && len(o.c.World.There([]string{x.Path})) > 0 {
				given = append(given, x)
			}
		}
		k.Given = given
		return nil
	})
}
