package agent

import (
	"context"
	"path/filepath"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/poold"
)

// serve serves the site's disks on a socket, as a poold process does.
func (s *site) serve(socket string) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done, node := make(chan error, 1), s.node
	go func() { done <- poold.Run(ctx, poold.Config{Socket: socket, Node: node}) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("poold ended with: %v", err)
		}
	}
}

func TestPooldMayBeAnotherProcessAndGoAway(t *testing.T) {
	s := newSite(t, "")
	socket := filepath.Join(t.TempDir(), "poold.sock")
	stop := s.serve(socket)
	local := s.node
	client, err := poold.Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s.node = client
	pc, sc := s.classes()
	s.create(pc, sc, s.volume("a"))
	defer s.finish("a")
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	await(t, "the capacity", func() bool { return s.capacity() == "9Gi" })

	stop()
	s.create(s.volume("b"))
	defer s.finish("b")
	await(t, "the trouble to be told", s.says("b", isFailed, v1alpha1.ReasonProvisionerError))
	await(t, "a capacity of nothing", func() bool { return s.capacity() == "0" })
	if e := s.entry("a"); e.State != isReady {
		t.Errorf("entry %+v; a poold that is away has lost nothing", e)
	}

	s.node = local
	stop = s.serve(socket)
	defer stop()
	await(t, "the replica after poold came back", s.says("b", isReady, v1alpha1.ReasonCarved))
	await(t, "the capacity after poold came back", func() bool { return s.capacity() == "8Gi" })
}
