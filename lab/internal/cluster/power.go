package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// poweredOff is the annotation of a Node by which a system that controls the power of machines says that a boot has
// ended.
const poweredOff = "berth.dev/powered-off"

// PowerOffAndTell switches the node off, and then says so on its Node: the power is off by then, and no other command
// switches it on meanwhile. A native node has the boot of this machine, which goes on.
func (n Node) PowerOffAndTell(ctx context.Context) error {
	return n.change(func(m Machine) error {
		if n.native() {
			return fmt.Errorf("node %s is native: its processes end, and no boot does that a power record could name", n.name)
		}
		if err := m.PowerOff(ctx); err != nil {
			return err
		}
		client, err := n.cluster.ControlPlane().client(ctx)
		if err != nil {
			return err
		}
		defer client.Close()
		path := "/api/v1/nodes/" + n.name
		body, err := client.Get(ctx, path)
		if err != nil {
			return fmt.Errorf("node %s is off, and its Node cannot be read: %w", n.name, err)
		}
		record, err := powerRecord(body, time.Now())
		if err != nil {
			return fmt.Errorf("node %s is off: %w", n.name, err)
		}
		return client.Apply(ctx, path, map[string]any{
			"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{"name": n.name, "annotations": map[string]string{poweredOff: record}},
		})
	})
}

// powerRecord says that the boot of a Node has ended. A kubelet may not have told yet of the boot that was the last:
// then the record is about the one before, and proves nothing of the last.
func powerRecord(node []byte, since time.Time) (string, error) {
	var n struct {
		Status struct {
			NodeInfo struct{ SystemUUID, BootID string }
		}
	}
	if err := json.Unmarshal(node, &n); err != nil {
		return "", fmt.Errorf("reading its Node: %w", err)
	}
	info := n.Status.NodeInfo
	if info.SystemUUID == "" || info.BootID == "" {
		return "", errors.New("its Node does not say which machine it is, in which boot")
	}
	record, err := json.Marshal(map[string]string{"machine": info.SystemUUID, "boot": info.BootID, "since": since.UTC().Format(time.RFC3339)})
	return string(record), err
}
