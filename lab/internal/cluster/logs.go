package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/san"
)

// Logs returns the path of every log of the cluster by name: a process of the
// control plane ("etcd"), or a node and a process on it ("node1/kubelet").
func (c *Cluster) Logs() map[string]string {
	logs := map[string]string{}
	for _, rec := range c.state.processes() {
		logs[rec.Name] = rec.Log
	}
	for _, n := range c.Nodes() {
		m, err := n.open()
		if err != nil {
			continue // not made yet: it has no logs
		}
		for service, path := range m.Logs() {
			logs[n.name+"/"+service] = path
		}
	}
	if s, err := san.Open(san.Place{Dir: c.paths.san()}); err == nil {
		for writer, path := range s.Logs() {
			logs["san/"+writer] = path
		}
	}
	return logs
}

// Log returns the path of one log. A node alone means its kubelet's.
func (c *Cluster) Log(name string) (string, error) {
	logs := c.Logs()
	for _, candidate := range []string{name, name + "/kubelet"} {
		if path, ok := logs[candidate]; ok {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no log %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(logs)), ", "))
}
