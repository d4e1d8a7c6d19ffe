package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/run"
)

// learntZvols returns the commands with which Berth changes something for each operation on
// zvols.
func learntZvols(t *testing.T) map[string][]run.Command {
	t.Helper()
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
	return learnt
}

func operationsOf(all map[string][]run.Command) map[string][]string {
	operations := map[string][]string{}
	for operation, commands := range all {
		for _, c := range commands {
			operations[operation] = append(operations[operation], c.Args[0])
		}
	}
	return operations
}

// arguments returns the arguments of all commands, one command per line.
func arguments(all map[string][]run.Command) string {
	var b strings.Builder
	for _, commands := range all {
		for _, c := range commands {
			b.WriteString(strings.Join(c.Args, "\n") + "\n")
		}
	}
	return b.String()
}

func TestATypedOperationIsOneCommandUnlessZFSNeedsMore(t *testing.T) {
	learnt := learntZvols(t)
	got := typed(zvol, learnt)
	want := map[string][]string{
		create: {"create"}, snapshot: {"snapshot"}, clone: {"snapshot", "clone"},
		deletion: {"destroy"}, deleteCopied: {"promote", "destroy"}, deleteSnapshot: {"destroy"},
	}
	if diff := cmp.Diff(want, operationsOf(got)); diff != "" {
		t.Errorf("typed are (-want +got):\n%s", diff)
	}
	if !strings.Contains(arguments(learnt), volumesArea) || strings.Contains(arguments(got), volumesArea) {
		t.Errorf("Berth's filesystem of volumes is where typed ones are to be:\n%s\nor is not where Berth's are:\n%s", arguments(got), arguments(learnt))
	}
}

func TestTheFollowUpCommandsOfAnOperationAreLearntWithIt(t *testing.T) {
	want := map[string][]string{
		create: {"create"}, snapshot: {"snapshot"}, clone: {"snapshot", "clone", "destroy"},
		deletion: {"destroy"}, deleteCopied: {"rename", "set", "rollback"}, deleteSnapshot: {"destroy"},
	}
	if diff := cmp.Diff(want, operationsOf(learntZvols(t))); diff != "" {
		t.Errorf("learnt are (-want +got):\n%s", diff)
	}
}
