package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsTypedIsOneCommandUnlessZFSNeedsMore(t *testing.T) {
	d, _, _ := playedZpools(t)
	s := played(zvol, dependent, both, d)
	through := newBerth(socketSide, d.remote, zvol)
	if err := s.rehearse(t.Context(), through, warmUp); err != nil {
		t.Fatal(err)
	}
	learnt, err := s.learn(t.Context(), through, d.changes)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for operation, commands := range typed(zvol, learnt) {
		for _, c := range commands {
			got[operation] = append(got[operation], c.Args[0])
		}
	}
	want := map[string][]string{
		create: {"create"}, snapshot: {"snapshot"}, clone: {"snapshot", "clone"},
		deletion: {"destroy"}, deleteCopied: {"promote", "destroy"}, deleteSnapshot: {"destroy"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("typed are (-want +got):\n%s", diff)
	}
}
