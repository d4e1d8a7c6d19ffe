package owner

import (
	"context"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// telling is a World whose nodes answer, if they are asked.
type telling struct {
	World
	copies map[string]ownership.Copy
}

func (w telling) Ask(_ context.Context, _ string, nodes []string) (answers []ownership.Peer) {
	for _, node := range nodes {
		if c, is := w.copies[node]; is {
			answers = append(answers, ownership.Peer{Node: node, Copy: c})
		}
	}
	return answers
}

// The record comes from a backup. b writes in epoch 9, which the record has forgotten, and its agent answers. The node that
// joins must not take b's registration away before that epoch is recorded again.
func TestANodeThatJoinsHearsOfAWriterThatABackupHasForgotten(t *testing.T) {
	epoch := func(number uint64) lineage.Epoch { return lineage.Epoch{Number: number, ID: "an epoch"} }
	for _, phase := range []ownership.Phase{ownership.Released, ownership.Fenced} {
		v := &ownership.Volume{
			Kind: ownership.Attachments, Factor: 1, Sharing: ownership.Sharing{MaxShares: 3, Persistent: true, ManyWriters: true},
			Epoch: epoch(10), Primary: ownership.Primary{Node: "a", Boot: "boot", Phase: ownership.Preparing},
			Writers:  []ownership.Writer{{Primary: ownership.Primary{Node: "b", Boot: "boot", Phase: phase}, Epoch: epoch(2)}},
			Lineage:  lineage.Lineage{{Epoch: epoch(1)}, {Epoch: epoch(10)}},
			Keys:     []ownership.Key{{Node: "a", Epoch: epoch(10)}},
			Replicas: []ownership.Replica{{Node: "a", State: ownership.Ready}, {Node: "b", State: ownership.Ready}},
		}
		of := func(node string, opened, closed uint64) ownership.Copy {
			return ownership.Copy{Promise: ownership.Promise{Epoch: epoch(opened), Primary: node, Boot: "boot"}, Opened: epoch(opened), Closed: epoch(closed)}
		}
		mine, theirs := ownership.Key{Node: "a", Epoch: epoch(10)}.Raw(), ownership.Key{Node: "b", Epoch: epoch(9)}.Raw()
		o, l := New(Config{Node: "a", World: telling{copies: map[string]ownership.Copy{"b": of("b", 9, 2)}}}), &look{id: "v"}
		l.facts = ownership.NodeFacts{
			Me: "a", Boot: "boot", Now: noon, Record: v, Wanted: true, FreshID: "fresh", Copy: of("a", 10, 0),
			Disk: ownership.Disk{Link: ownership.Attached, Registered: mine, Holder: theirs, Registrants: true, Keys: []ownership.RawKey{theirs, mine}},
		}
		l.facts.Peers = (&asking{}).peers(t.Context(), o, l)
		if said, _ := ownership.NodeRules().Next(&l.facts); said.Verb != ownership.Wait || said.Reason != ownership.RecordBehind {
			t.Errorf("the backup calls b %v: %v: %s", phase, said.Verb, said.Message())
		}
	}
}
