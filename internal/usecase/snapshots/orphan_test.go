package snapshots_test

import (
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/snapshots"
)

// Orphan implements snapshots.Orphans.
func (s *stage) Orphan(o ledger.Owner) (node, pool string, found bool) {
	if len(s.kept) == 0 || o != ledger.VolumeSnapshot(id) {
		return "", "", false
	}
	return s.kept[0], s.kept[1], true
}

// adoptedIn changes a Snapshot to one that was adopted from a place.
func adoptedIn(node, pool string) func(*v1alpha1.Snapshot) {
	return func(o *v1alpha1.Snapshot) {
		o.Spec.Adopted, o.Spec.Replicas = true, []v1alpha1.ReplicaSpec{{Node: node, Pool: pool}}
	}
}

func TestNoSnapshotIsTakenWhileAnotherPlaceKeepsOneOfItsName(t *testing.T) {
	for name, test := range map[string]struct {
		node, pool string
		refused    bool
	}{
		"another node keeps data of the name":             {"m", "vg0/thin", true},
		"another pool of the node keeps data of the name": {"n", "vg1/thin", true},
		"the pool of the volume keeps data of the name":   {"n", "vg0/thin", false},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.kept = []string{test.node, test.pool}
				_, err := s.Create(within(t), snapshots.Request{Name: csiName, Volume: source})
				if !test.refused {
					expect(t, err, nil)
					return
				}
				expect(t, err, provision.ErrConflict)
				for _, says := range []string{"node " + test.node, "pool " + test.pool, "kubectl berth adopt " + test.node + " " + id} {
					if err != nil && !strings.Contains(err.Error(), says) {
						t.Errorf("%v does not say %q", err, says)
					}
				}
				s.wroteOnly()
				s.nodes[test.node] = "" // now the test does as the message says
				s.says.Node, s.says.Pool = test.node, test.pool
				s.make(adoptedIn(test.node, test.pool))
				_, err = s.Create(within(t), snapshots.Request{Name: csiName, Volume: source})
				expect(t, err, nil)
			}, volume())
		})
	}
}
