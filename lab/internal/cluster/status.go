package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/lab/internal/controlplane"
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

// statusLimit bounds the wait for the API server: status must answer when the
// cluster does not.
const statusLimit = 3 * time.Second

// Status returns the present state of the cluster.
func (c *Cluster) Status(ctx context.Context) (Status, error) {
	s := Status{Name: c.paths.name, Kubeconfig: c.Kubeconfig()}
	for _, name := range c.components() {
		rec, _ := c.state.Process(name)
		p := ProcessStatus{Name: name, Running: rec.Alive(), Log: rec.Log}
		if p.Running {
			p.PID = rec.PID
		}
		s.Processes = append(s.Processes, p)
	}
	ready, err := c.readyConditions(ctx)
	if err != nil {
		s.Problem = err.Error()
	}
	for _, name := range c.Nodes() {
		n, err := c.nodeStatus(ctx, name)
		if err != nil {
			return s, err
		}
		n.Ready = ready[name]
		s.Nodes = append(s.Nodes, n)
	}
	s.SAN, err = c.sanStatus(ctx)
	return s, err
}

// components are the names of the processes that the cluster should have.
func (c *Cluster) components() []string {
	all := append(slices.Clone(controlplane.Components), forwarder)
	if c.state.get().Programs.CoreDNS == "" {
		all = slices.DeleteFunc(all, func(name string) bool { return name == controlplane.DNS })
	}
	return all
}

func (c *Cluster) nodeStatus(ctx context.Context, name string) (NodeStatus, error) {
	m, err := c.open(name)
	if err != nil {
		return NodeStatus{Name: name, Control: name == controlNode, Power: "missing"}, nil //nolint:nilerr // that is the status
	}
	s := NodeStatus{Name: name, Control: name == controlNode, Power: string(m.Power())}
	if m.Power() != guest.Off {
		s.PID = m.PID()
	}
	for _, d := range m.Disks() {
		s.Disks = append(s.Disks, DiskStatus{Name: d.Name, Size: d.Size, Device: m.Device(d)})
	}
	net, err := c.network(ctx)
	if err != nil {
		return s, err
	}
	s.Link = c.link(name, m)
	if s.Lost, err = net.Lost(ctx, name); err != nil || c.offNative(name, m) {
		return s, err // the cable of a native node goes with its power
	}
	s.Cut, err = net.IsCut(ctx, name)
	return s, err
}

// client returns a client of the cluster's administrator.
func (c *Cluster) client(ctx context.Context) (*controlplane.Client, error) {
	net, err := c.network(ctx)
	if err != nil {
		return nil, err
	}
	config, err := c.plan(net)
	if err != nil {
		return nil, err
	}
	return controlplane.NewClient(config)
}

// readyConditions returns the Ready condition of every registered node.
func (c *Cluster) readyConditions(ctx context.Context) (map[string]string, error) {
	client, err := c.client(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	return nodesReady(ctx, client)
}

// nodesReady asks the API server. Only these fields of a Node matter here, so
// the lab does without a Kubernetes client.
func nodesReady(ctx context.Context, client *controlplane.Client) (map[string]string, error) {
	body, err := client.Get(ctx, "/api/v1/nodes")
	if err != nil {
		return nil, fmt.Errorf("the API server does not answer: %w", err)
	}
	return parseReady(body)
}

func parseReady(body []byte) (map[string]string, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("reading the list of nodes: %w", err)
	}
	ready := map[string]string{}
	for _, n := range list.Items {
		for _, condition := range n.Status.Conditions {
			if condition.Type == "Ready" {
				ready[n.Metadata.Name] = condition.Status
			}
		}
	}
	return ready, nil
}
