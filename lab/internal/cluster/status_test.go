package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheReadyConditionIsFoundAmongOthers(t *testing.T) {
	got, err := parseReady([]byte(`{"items": [
	  {"metadata": {"name": "node1"}, "status": {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}},
	  {"metadata": {"name": "node2"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
	  {"metadata": {"name": "node3"}, "status": {}}]}`))
	want := map[string]string{"node1": "True", "node2": "Unknown"}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("parseReady = %v, %v; want %v", got, err, want)
	}
	if _, err := parseReady([]byte("<html>")); err == nil {
		t.Error("an answer that is no list was accepted")
	}
}

func TestNodesAndLogsFollowTheSettings(t *testing.T) {
	st, err := newState(t.TempDir()+"/cluster.json", "default", Settings{Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{state: st, paths: paths{root: t.TempDir(), name: "default"}}
	if diff := cmp.Diff([]string{"node1", "node2"}, c.Settings().NodeNames()); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	for node, want := range map[string]string{"node9": "node1, node2", "node1": "lab up"} {
		if _, err := c.Node(node).Machine(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Machine(%s) = %v, want an error with %q", node, err, want)
		}
	}
	if _, err := c.Log("nothing"); err == nil {
		t.Error("a log that does not exist was found")
	}
}
