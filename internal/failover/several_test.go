package failover

import (
	"slices"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

func TestTheDiskOfSeveralWritersRefusesANodeOnlyWhereAStandbySaysSo(t *testing.T) {
	several := func(fenced uint64, w ...ownership.Writer) *ownership.Volume {
		v := &ownership.Volume{
			Kind: ownership.Attachments, Factor: 1, Sharing: ownership.Sharing{MaxShares: 3, Persistent: true, ManyWriters: true}, Writers: w,
			Replicas: []ownership.Replica{{Node: "a", State: ownership.Ready}, {Node: "b", State: ownership.Ready, Fenced: lineage.Epoch{Number: fenced, ID: "a"}}},
		}
		return v.Stored()
	}
	writer := func(node string, number uint64, p ownership.Phase) ownership.Writer {
		return ownership.Writer{Primary: ownership.Primary{Node: node, Phase: p}, Epoch: lineage.Epoch{Number: number, ID: node}}
	}
	plan := &Plan{Volume: "v", Epoch: 2, From: "a", By: "b", Standbys: []string{"b"}, Others: []string{"b"}}
	for name, test := range map[string]struct {
		v       *ownership.Volume
		refuses bool
	}{
		"it gave the epoch up, and writes again": {several(1, writer("b", 3, ownership.Active), writer("a", 4, ownership.Active)), false},
		"an administrator's taint was the proof": {several(1, writer("a", 2, ownership.Fenced), writer("b", 3, ownership.Active)), false},
		"b shut it out":                          {several(2, writer("a", 2, ownership.Fenced), writer("b", 3, ownership.Active)), true},
		"b has shut it out, and no more":         {several(2, writer("a", 2, ownership.Active), writer("b", 3, ownership.Active)), true},
	} {
		steps, _ := Progress(plan, test.v, true)
		if slices.Contains(steps, "the disk refuses what node a writes") != test.refuses {
			t.Errorf("%s: %q", name, steps)
		}
	}
}
