package cluster

import (
	"context"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
)

// Status is the state of a cluster, seen from outside.
type Status struct {
	Name       string          `json:"name"`
	Kubeconfig string          `json:"kubeconfig"`
	Processes  []ProcessStatus `json:"processes"`
	Nodes      []NodeStatus    `json:"nodes"`
	SAN        *SANStatus      `json:"san,omitempty"`
	Problem    string          `json:"problem,omitempty"` // why the API server does not answer
}

// ProcessStatus is a process of the control plane.
type ProcessStatus struct {
	Name    string `json:"name"`
	PID     int    `json:"pid,omitempty"`
	Running bool   `json:"running"`
	Log     string `json:"log"`
}

// NodeStatus is a node and its machine.
type NodeStatus struct {
	Name string `json:"name"`
	// Control marks the node that [Settings.Control] asks for.
	Control bool   `json:"control,omitempty"`
	Power   string `json:"power"` // on, off, paused or missing
	Cut     bool   `json:"cut"`   // from the network
	// Lost are the parts of the network that the node is cut from, see [network.Part].
	Lost []network.Part `json:"lost,omitempty"`
	// Link delays and loses the packets that the node sends.
	Link  network.Link `json:"link,omitzero"`
	Ready string       `json:"ready"` // the Ready condition: True, False, Unknown, or empty
	Disks []DiskStatus `json:"disks"`
	PID   int          `json:"pid,omitempty"`
}

// DiskStatus is a data disk of a node.
type DiskStatus struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"` // bytes
	Device string `json:"device"`
}

// Status returns the present state of the cluster.
func (c *Cluster) Status(ctx context.Context) (Status, error) {
	s := Status{Name: c.paths.name, Kubeconfig: c.Kubeconfig(), Processes: c.ControlPlane().status()}
	ready, err := c.ControlPlane().readyConditions(ctx)
	if err != nil {
		s.Problem = err.Error()
	}
	for _, n := range c.Nodes() {
		node, err := n.status(ctx)
		if err != nil {
			return s, err
		}
		node.Ready = ready[n.name]
		s.Nodes = append(s.Nodes, node)
	}
	s.SAN, err = c.SAN().status(ctx)
	return s, err
}

func (n Node) status(ctx context.Context) (NodeStatus, error) {
	m, err := n.open()
	if err != nil {
		return NodeStatus{Name: n.name, Control: n.name == controlNode, Power: "missing"}, nil //nolint:nilerr // that is the status
	}
	s := NodeStatus{Name: n.name, Control: n.name == controlNode, Power: string(m.Power())}
	if m.Power() != guest.Off {
		s.PID = m.PID()
	}
	for _, d := range m.Disks() {
		s.Disks = append(s.Disks, DiskStatus{Name: d.Name, Size: d.Size, Device: m.Device(d)})
	}
	net, err := n.cluster.network(ctx)
	if err != nil {
		return s, err
	}
	s.Link = n.link(m)
	if s.Lost, err = net.Lost(ctx, n.name); err != nil || n.offNative(m) {
		return s, err // the cable of a native node goes with its power
	}
	s.Cut, err = net.IsCut(ctx, n.name)
	return s, err
}
