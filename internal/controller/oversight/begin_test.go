package oversight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

func TestTheFirstRecordFollowsFromTheKindAndThePlaces(t *testing.T) {
	epoch := lineage.Epoch{Number: 1, ID: "fresh"}
	on := func(nodes ...string) (wanted []v1alpha1.ReplicaSpec) {
		for _, n := range nodes {
			wanted = append(wanted, v1alpha1.ReplicaSpec{Node: n, Pool: "vg"})
		}
		return wanted
	}
	failover := ownership.Failover{Automatic: true, MaxDataLoss: time.Minute}
	for name, tc := range map[string]struct {
		parameters ownership.Volume
		wanted     []v1alpha1.ReplicaSpec
		want       *ownership.Volume
	}{
		"no node has a shared disk, and its first mount begins with a check": {
			ownership.Volume{Kind: ownership.Attachments, Factor: 2, Size: 1, Sharing: ownership.Sharing{MaxShares: 3}}, nil,
			&ownership.Volume{Kind: ownership.Attachments, Factor: 2, Size: 1, Sharing: ownership.Sharing{MaxShares: 3},
				Epoch: epoch, Lineage: lineage.Lineage{{Epoch: epoch}}},
		},
		"copies are made where the Volume says, and the first of these makes the first snapshot": {
			ownership.Volume{Kind: ownership.Snapshots, Factor: 2, Size: 1, Failover: failover}, on("b", "a"),
			&ownership.Volume{Kind: ownership.Snapshots, Factor: 2, Size: 1, Failover: failover, Epoch: epoch, Lineage: lineage.Lineage{{Epoch: epoch}},
				Clean: true, Primary: ownership.Primary{Node: "b"}, RecoveryPoint: lineage.Point{Epoch: epoch, Seq: 1},
				Replicas: []ownership.Replica{{Node: "a"}, {Node: "b"}}},
		},
		"copies that have no places yet have no record": {ownership.Volume{Kind: ownership.Snapshots, Factor: 2, Size: 1}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := beginning(&tc.parameters, tc.wanted, func() string { return "fresh" })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
