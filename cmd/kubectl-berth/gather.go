package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/schedule/explain"
)

// gather lists the cluster. Where nothing is changed it asks the API server's cache: the lists may be long, and
// a slightly old state does no harm.
func gather(ctx context.Context, q question) (explain.Cluster, error) {
	var (
		nodes           v1alpha1.StorageNodeList
		poolClasses     v1alpha1.PoolClassList
		volumes         v1alpha1.VolumeList
		claims          corev1.PersistentVolumeClaimList
		pvs             corev1.PersistentVolumeList
		pods            corev1.PodList
		storageClasses  storagev1.StorageClassList
		kubernetesNodes corev1.NodeList
		leases          coordinationv1.LeaseList
	)
	cached := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
	if q.live {
		cached = &client.ListOptions{}
	}
	for what, list := range map[string]client.ObjectList{
		"storage nodes": &nodes, "pool classes": &poolClasses, "volumes": &volumes, "claims": &claims,
		"persistent volumes": &pvs, "pods": &pods, "storage classes": &storageClasses, "nodes": &kubernetesNodes,
	} {
		if err := q.reader.List(ctx, list, cached); err != nil {
			return explain.Cluster{}, fmt.Errorf("listing %s: %w", what, err)
		}
	}
	beats := &heartbeats{ready: ready(kubernetesNodes.Items)}
	err := q.reader.List(ctx, &leases, client.InNamespace(q.system), cached)
	switch {
	case apierrors.IsForbidden(err):
		if _, err := fmt.Fprintf(q.notes, "note: leases in namespace %s may not be read: whether agents are alive is not considered\n", q.system); err != nil {
			return explain.Cluster{}, err
		}
	case err != nil:
		return explain.Cluster{}, fmt.Errorf("listing leases: %w", err)
	default:
		beats.agents = agents(leases.Items)
	}
	return explain.Cluster{Heartbeats: beats, Lists: &schedule.Lists{
		Driver:       driver.Local(),
		StorageNodes: nodes.Items, PoolClasses: poolClasses.Items, Volumes: volumes.Items, Claims: claims.Items,
		PersistentVolumes: pvs.Items, Pods: pods.Items, StorageClasses: storageClasses.Items,
	}}, nil
}

// heartbeats says which nodes are away, as far as one read of the cluster shows. Only a
// process that has watched an agent can see that it has fallen silent.
type heartbeats struct {
	ready  map[string]bool
	agents map[string]bool // nil: not known
}

// Away is empty, or why a node cannot answer.
func (h *heartbeats) Away(node string) string {
	ready, exists := h.ready[node]
	switch {
	case !exists:
		return "the Node does not exist"
	case !ready:
		return "the Node is not ready"
	case h.agents != nil && !h.agents[node]:
		return "its berth-agent has no Lease: is it running?"
	}
	return ""
}

// Notify does nothing: the command reads the cluster once.
func (*heartbeats) Notify(func(string)) {}

func ready(nodes []corev1.Node) map[string]bool {
	out := map[string]bool{}
	for i := range nodes {
		out[nodes[i].Name] = slices.ContainsFunc(nodes[i].Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	}
	return out
}

func agents(leases []coordinationv1.Lease) map[string]bool {
	out := map[string]bool{}
	for i := range leases {
		if node, ok := strings.CutPrefix(leases[i].Name, v1alpha1.AgentLeasePrefix); ok {
			out[node] = true
		}
	}
	return out
}
