package run

import (
	"context"
	"slices"
	"testing"
)

type heard []string

func (h *heard) Query(_ context.Context, c Command) ([]byte, error) { return h.Change(c) }

func (h *heard) Change(c Command) ([]byte, error) {
	*h = append(*h, c.Operation+": "+c.String())
	return nil, nil
}

func TestAProgramOfTheMachineRunsInTheNamespacesOfItsFirstProcess(t *testing.T) {
	var h heard
	c := Command{Operation: "login", Program: "iscsiadm", Args: []string{"--mode", "node"}}
	_, _ = Host{&h}.Query(t.Context(), c)
	_, _ = Host{&h}.Change(c)
	want := "login: nsenter --target=1 --mount --net --uts --ipc -- iscsiadm --mode node"
	if !slices.Equal(h, []string{want, want}) || len(c.Args) != 2 {
		t.Errorf("it runs %q", h)
	}
}
