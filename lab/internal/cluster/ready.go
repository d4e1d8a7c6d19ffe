package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/lab/internal/controlplane"
	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/node"
	"berth.dev/berth/lab/internal/progress"
)

// readyLimit bounds the wait for nodes that were just started.
const readyLimit = 4 * time.Minute

// statusLimit bounds the wait for the API server: status must answer when the
// cluster does not.
const statusLimit = 3 * time.Second

// awaitNodes waits until every node that can become Ready is Ready.
func (s starter) awaitNodes(ctx context.Context) error {
	c := s.cluster
	if len(c.Nodes()) == 0 {
		return nil
	}
	return c.step("nodes Ready", func(step progress.Step) error {
		client, err := controlplane.NewClient(s.config)
		if err != nil {
			return err
		}
		defer client.Close()
		limited, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not Ready after %v", readyLimit))
		defer cancel()
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		waiting := c.Settings().NodeNames()
		for {
			if now := s.notReady(limited, client); limited.Err() == nil { // else it could not ask
				waiting = now
			}
			if len(waiting) == 0 {
				return nil
			}
			step.Note("waiting for %s", strings.Join(waiting, ", "))
			select {
			case <-limited.Done():
				return s.explainNotReady(context.Cause(limited), waiting)
			case <-ticker.C:
			}
		}
	})
}

// notReady returns the nodes that are not Ready. It leaves out the paused and
// disconnected nodes: a test keeps those from being Ready.
func (s starter) notReady(ctx context.Context, client *controlplane.Client) []string {
	ready, _ := nodesReady(ctx, client) // no answer: nothing is Ready
	var waiting []string
	for _, n := range s.cluster.Nodes() {
		now, err := n.status(ctx)
		if err == nil && (now.Power == string(guest.Paused) || now.Cut || slices.Contains(now.Lost, network.API)) {
			continue
		}
		if ready[n.name] != "True" {
			waiting = append(waiting, n.name)
		}
	}
	return waiting
}

func (s starter) explainNotReady(cause error, waiting []string) error {
	err := fmt.Errorf("%s: %w", strings.Join(waiting, ", "), cause)
	if m, openErr := s.cluster.Node(waiting[0]).open(); openErr == nil {
		logs := m.Logs()
		return fmt.Errorf("%w: read the logs %s and %s", err, logs[node.Kubelet], cmp.Or(logs["console"], logs["init"]))
	}
	return err
}

// readyConditions returns the Ready condition of every registered node.
func (p ControlPlane) readyConditions(ctx context.Context) (map[string]string, error) {
	client, err := p.client(ctx)
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
