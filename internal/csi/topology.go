package csi

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase/volumes"
)

// parseRequirements reads the nodes on which a volume may be. If no nodes are requisite,
// all nodes are allowed, and the preferred ones among them.
func parseRequirements(r *csi.TopologyRequirement) (volumes.Topology, error) {
	allowed, err := parseTopologies(r.GetRequisite())
	if err != nil {
		return volumes.Topology{}, err
	}
	preferred, err := parseTopologies(r.GetPreferred())
	if err != nil {
		return volumes.Topology{}, err
	}
	if len(allowed) > 0 {
		for _, node := range preferred {
			if !slices.Contains(allowed, node) {
				return volumes.Topology{}, invalid("node %s is preferred but not among the requisite ones", node)
			}
		}
	}
	return volumes.Topology{Allowed: allowed, Preferred: preferred}, nil
}

func parseTopologies(topologies []*csi.Topology) ([]string, error) {
	var nodes []string
	for _, topology := range topologies {
		node, err := parseTopology(topology)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// parseTopology reads one segment. Its only key is the node's name, since no other key
// says where a volume with one copy is.
func parseTopology(topology *csi.Topology) (string, error) {
	for key := range topology.GetSegments() {
		if key != v1alpha1.TopologyKey {
			return "", invalid("topology key %q is not supported (supported: %s)", key, v1alpha1.TopologyKey)
		}
	}
	node := topology.GetSegments()[v1alpha1.TopologyKey]
	if node == "" {
		return "", invalid("a topology lacks the key %s", v1alpha1.TopologyKey)
	}
	return node, nil
}

func topologyOf(nodes []string) []*csi.Topology {
	topologies := make([]*csi.Topology, 0, len(nodes))
	for _, node := range nodes {
		topologies = append(topologies, &csi.Topology{Segments: map[string]string{v1alpha1.TopologyKey: node}})
	}
	return topologies
}
