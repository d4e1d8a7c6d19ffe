package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// watched notes of each mount whether the whole filesystem is checked before.
type watched struct {
	mount.Mounter
	mu    sync.Mutex
	whole []bool
}

func (w *watched) Mount(ctx context.Context, r mount.Request) error {
	err := w.Mounter.Mount(ctx, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.whole = append(w.whole, r.Whole)
	}
	return err
}

func (w *watched) checks() []bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Compact(slices.Clone(w.whole))
}

// The machine of the owner is lost. The next owner's mount has the filesystem checked, and the one after a clean end
// does not.
func TestTheWholeFilesystemIsCheckedAfterAnUncleanEndIfTheClassSaysSo(t *testing.T) {
	for name, checks := range map[string]bool{"a class with checks": true, "a class without": false} {
		t.Run(name, func(t *testing.T) {
			m, mounts := newMedium(), map[string]*watched{}
			s := newShared(t, func(s *scene, node string) machinery {
				made := m.machinery(s, node)
				mounts[node] = &watched{Mounter: made.Mounter}
				made.Mounter = mounts[node]
				return made
			}, func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.CheckFilesystem = checks })
			a, b := s.nodes[alpha], s.nodes[beta]
			s.begins(alpha)
			s.ends(alpha)
			s.begins(alpha)
			if got := mounts[alpha].checks(); !slices.Equal(got, []bool{false}) {
				t.Errorf("alpha begins after clean ends, and checks %v", got)
			}
			s.standsBy()
			a.traffic.cut()
			s.lost, s.wanted = []string{a.name}, []string{beta}
			s.until("staged on beta", b.stages)
			if got := mounts[beta].checks(); !slices.Equal(got, []bool{checks}) {
				t.Errorf("beta takes over, and checks %v", got)
			}
			if err := a.made.write(a.pod(), "late"); !errors.Is(err, provision.ErrConflict) {
				t.Errorf("a write of the old owner: %v", err)
			}
		})
	}
}
