package ownership

import (
	"testing"

	"berth.dev/berth/internal/lineage"
)

func TestAKeyIsFoundWhereverANodeKnowsOfIt(t *testing.T) {
	epoch := lineage.Epoch{Number: 2, ID: "two"}
	writer, fence := Key{Node: "a", Epoch: epoch}, Key{Node: "b", Epoch: epoch, Fence: true}
	promise := Promise{Epoch: epoch, Primary: "a"}
	tests := map[string]struct {
		facts NodeFacts
		raw   RawKey
		want  Key
		found bool
	}{
		"in the record, before another":    {NodeFacts{Record: &Volume{Keys: []Key{writer, fence}}}, writer.Raw(), writer, true},
		"in the record, behind another":    {NodeFacts{Record: &Volume{Keys: []Key{writer, fence}}}, fence.Raw(), fence, true},
		"as the writer that it promised":   {NodeFacts{Me: "b", Record: &Volume{}, Copy: Copy{Promise: promise}}, writer.Raw(), writer, true},
		"as the node that shut it out":     {NodeFacts{Me: "b", Record: &Volume{}, Copy: Copy{Promise: promise}}, fence.Raw(), fence, true},
		"as the writer that a peer knows":  {NodeFacts{Me: "c", Record: &Volume{}, Peers: []Peer{{Node: "b", Copy: Copy{Promise: promise}}}}, writer.Raw(), writer, true},
		"nowhere, and reads its epoch":     {NodeFacts{Record: &Volume{}}, fence.Raw(), Key{Epoch: lineage.Epoch{Number: 2}, Fence: true}, false},
		"nowhere, because there is no key": {NodeFacts{Record: &Volume{}, Peers: []Peer{{Node: "b"}}}, 0, Key{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, found := readKey(&tt.facts, tt.raw); got != tt.want || found != tt.found {
				t.Errorf("found %v: %+v", found, got)
			}
		})
	}
}
