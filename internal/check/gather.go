package check

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// Installation says what was installed, and where.
type Installation struct {
	// Name is what the names of its objects begin with.
	Namespace, Name string
	// Guard and Disk: guard.enabled and disk.enabled of the chart.
	Guard, Disk bool
}

// Gather asks the API server for the facts about an installation.
func Gather(ctx context.Context, from client.Reader, of Installation) (Facts, error) {
	var f Facts
	if err := of.get(ctx, from, "controller", "the controller", &f.Controller); err != nil {
		return Facts{}, err
	}
	var err error
	if f.Agents, f.Pods, err = of.agents(ctx, from, "agent", "agents"); err != nil {
		return Facts{}, err
	}
	if of.Guard {
		f.Guards = &appsv1.DaemonSet{}
		if err := of.get(ctx, from, "guard", "the guards", f.Guards); err != nil {
			return Facts{}, err
		}
	}
	if of.Disk {
		f.Disk = &Disk{}
		if err := of.get(ctx, from, "disk-controller", "the disk controllers", &f.Disk.Controller); err != nil {
			return Facts{}, err
		}
		if f.Disk.Agents, f.Disk.Pods, err = of.agents(ctx, from, "disk-agent", "disk agents"); err != nil {
			return Facts{}, err
		}
	}
	var nodes v1alpha1.StorageNodeList
	if err := from.List(ctx, &nodes); err != nil {
		return Facts{}, fmt.Errorf("listing the nodes that have reported: %w", err)
	}
	var kubelets storagev1.CSINodeList
	if err := from.List(ctx, &kubelets); err != nil {
		return Facts{}, fmt.Errorf("listing the drivers that kubelets know: %w", err)
	}
	f.Nodes, f.Kubelets = nodes.Items, kubelets.Items
	return f, nil
}

func (of Installation) get(ctx context.Context, from client.Reader, component, what string, to client.Object) error {
	if err := from.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name + "-" + component}, to); err != nil {
		return fmt.Errorf("asking for %s: %w", what, err)
	}
	return nil
}

// agents asks for a DaemonSet of agents, and for its pods.
func (of Installation) agents(ctx context.Context, from client.Reader, component, what string) (set appsv1.DaemonSet, _ []corev1.Pod, err error) {
	if err := of.get(ctx, from, component, "the "+what, &set); err != nil {
		return set, nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return set, nil, fmt.Errorf("reading which pods are %s: %w", what, err)
	}
	var pods corev1.PodList
	if err := from.List(ctx, &pods, client.InNamespace(of.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return set, nil, fmt.Errorf("listing the pods of the %s: %w", what, err)
	}
	return set, pods.Items, nil
}
