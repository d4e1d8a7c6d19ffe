package cluster

import (
	"path/filepath"
	"slices"
	"testing"

	"berth.dev/berth/lab/internal/controlplane"
)

func TestAClusterThatWasMadeWithoutNamesStaysSo(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	for name, c := range map[string]struct {
		programs     programs
		exist, names bool
	}{
		"without names":                {programs{Kubernetes: dir, Etcd: dir}, true, false},
		"with names":                   {programs{Kubernetes: dir, Etcd: dir, CoreDNS: dir}, true, true},
		"with names, and not in cache": {programs{Kubernetes: dir, Etcd: dir, CoreDNS: gone}, false, true},
		"not yet found":                {programs{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.programs.exist(); got != c.exist {
				t.Errorf("its programs exist: %v, want %v", got, c.exist)
			}
			st, err := newState(filepath.Join(t.TempDir(), "cluster.json"), "default", Settings{})
			if err != nil {
				t.Fatal(err)
			}
			if err := st.update(func(s *contents) { s.Programs = c.programs }); err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains((&Cluster{state: st}).ControlPlane().components(), controlplane.DNS); got != c.names {
				t.Errorf("status has a server of names: %v, want %v", got, c.names)
			}
		})
	}
}
