package report

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	applystorage "k8s.io/client-go/applyconfigurations/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/decide/wish"
)

// Objects is Cluster on a real API server. Reads come from the cache.
type Objects struct {
	node, namespace string
	client          client.Client
	owner           client.FieldOwner
	orphans         func() map[string]orphans.Orphan
	revisions       *Revisions

	// Standings returns how the wishes for pools stand; nil means that there are none. The
	// caller sets it before anything is published.
	Standings func() []wish.Standing
}

var _ Cluster = (*Objects)(nil)

// NewObjects writes the objects of a node under a field manager's name.
func NewObjects(node, namespace string, c client.Client, manager string, orphans func() map[string]orphans.Orphan, r *Revisions) *Objects {
	return &Objects{node: node, namespace: namespace, client: c, owner: client.FieldOwner(manager), orphans: orphans, revisions: r}
}

// Facts implements Cluster.
func (o *Objects) Facts(ctx context.Context) (Facts, error) {
	node, err := o.self(ctx)
	if err != nil {
		return Facts{}, err
	}
	// In this order, and before the Volumes are read: the report may rest on newer Volumes
	// than its revision says, never on older ones.
	owed := o.revisions.Owed()
	revision := o.revisions.Latest()
	var (
		classes v1alpha1.PoolClassList
		storage storagev1.StorageClassList
		volumes v1alpha1.VolumeList
	)
	for _, list := range []client.ObjectList{&classes, &storage, &volumes} {
		if err := o.client.List(ctx, list); err != nil {
			return Facts{}, fmt.Errorf("listing what is watched: %w", err)
		}
	}
	facts := Facts{
		Node: node, PoolClasses: classes.Items, StorageClasses: storage.Items,
		Expected:  ExpectedPools(volumes.Items, o.node),
		Orphans:   o.orphans(),
		Accounted: accountedFor(volumes.Items, o.node),
		Revision:  revision, Owed: owed,
	}
	if o.Standings != nil {
		facts.Standings = o.Standings()
	}
	before, err := o.StorageNode(ctx)
	facts.Remembered = remembered(before, wish.Names(facts.PoolClasses, facts.labels()))
	return facts, err
}

// self is the node's own Node, or nil if it is gone.
func (o *Objects) self(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	err := o.client.Get(ctx, client.ObjectKey{Name: o.node}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return node, err
}

// ExpectedPools are the pools that a node's volumes are in, or were when their
// devices were last seen.
func ExpectedPools(volumes []v1alpha1.Volume, node string) []string {
	var expected []string
	for _, v := range volumes {
		for _, e := range v.Status.Replicas {
			if e.Node == node && (e.State == v1alpha1.ReplicaReady || e.State == v1alpha1.ReplicaCopying || e.Reason == v1alpha1.ReasonDeviceMissing) {
				expected = append(expected, e.Pool)
			}
		}
	}
	slices.Sort(expected)
	return slices.Compact(expected)
}

// StorageNode implements Cluster.
func (o *Objects) StorageNode(ctx context.Context) (*v1alpha1.StorageNode, error) {
	node := &v1alpha1.StorageNode{}
	err := o.client.Get(ctx, client.ObjectKey{Name: o.node}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return node, err
}

// ApplyStorageNode implements Cluster. It forces the apply: only the agent writes the status.
func (o *Objects) ApplyStorageNode(ctx context.Context, status v1alpha1.StorageNodeStatus) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	body := apply.StorageNode(o.node).WithStatus(applied(status))
	err := o.client.Status().Apply(ctx, body, o.owner, client.ForceOwnership)
	if apierrors.IsNotFound(err) {
		if err := o.client.Apply(ctx, apply.StorageNode(o.node), o.owner, client.ForceOwnership); err != nil {
			return "", fmt.Errorf("creating StorageNode: %w", err)
		}
		body = apply.StorageNode(o.node).WithStatus(applied(status))
		err = o.client.Status().Apply(ctx, body, o.owner, client.ForceOwnership)
	}
	if err != nil {
		return "", fmt.Errorf("writing status of StorageNode: %w", err)
	}
	if body.UID == nil { // body is the API server's answer now
		return "", errors.New("writing status of StorageNode: the answer has no uid")
	}
	return *body.UID, nil
}

// summaryOwner is the field manager of the summary alone. Each StorageNode has one agent.
const summaryOwner client.FieldOwner = "berth-agent-summary"

// ApplySummary implements Cluster. It is an apply by itself, since an API server whose definition is
// older refuses a whole apply for a field that it does not know.
func (o *Objects) ApplySummary(ctx context.Context, s *v1alpha1.StorageNodeSummary) error {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	if err := o.client.Status().Apply(ctx, apply.StorageNode(o.node).WithStatus(summarized(s)), summaryOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("writing summary of StorageNode: %w", err)
	}
	return nil
}

func summarized(s *v1alpha1.StorageNodeSummary) *apply.StorageNodeStatusApplyConfiguration {
	status := apply.StorageNodeStatus()
	if s != nil {
		status.WithSummary(apply.StorageNodeSummary().WithPools(s.Pools).WithLargestVolume(s.LargestVolume))
	}
	return status
}

// applied leaves out the summary.
func applied(s v1alpha1.StorageNodeStatus) *apply.StorageNodeStatusApplyConfiguration {
	status := apply.StorageNodeStatus().WithFeatures(s.Features...)
	if s.VolumesRevision != "" {
		status.WithVolumesRevision(s.VolumesRevision)
	}
	for _, p := range s.Pools {
		pool := apply.Pool().WithName(p.Name).WithProvisioner(p.Provisioner).
			WithTotal(p.Total).WithForeign(p.Foreign).
			WithAllocationUnit(p.AllocationUnit).WithLargestVolume(p.LargestVolume).
			WithClasses(p.Classes...).WithHealth(p.Health).WithInventory(appliedInventory(p.Inventory)...)
		pool.Filled = entries.Copied(p.Filled)
		pool.MetadataFilledPercent = entries.Given(p.MetadataFilledPercent)
		pool.Media = entries.Given(p.Media)
		pool.Message = entries.Given(p.Message)
		pool.LastChange = appliedChange(p.LastChange)
		status.WithPools(pool)
	}
	for _, c := range s.Conditions {
		status.WithConditions(applymeta.Condition().WithType(c.Type).WithStatus(c.Status).
			WithReason(c.Reason).WithMessage(c.Message).WithLastTransitionTime(c.LastTransitionTime))
	}
	return status
}

// ListCapacities implements Cluster.
func (o *Objects) ListCapacities(ctx context.Context) ([]string, error) {
	list := &storagev1.CSIStorageCapacityList{}
	if err := o.client.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
		return nil, fmt.Errorf("listing capacities: %w", err)
	}
	var names []string
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	return names, nil
}

// ApplyCapacity implements Cluster.
func (o *Objects) ApplyCapacity(ctx context.Context, c storagev1.CSIStorageCapacity, owner types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	body := applystorage.CSIStorageCapacity(c.Name, c.Namespace).
		WithLabels(c.Labels).
		WithOwnerReferences(applymeta.OwnerReference().
			WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("StorageNode").WithName(o.node).WithUID(owner)).
		WithStorageClassName(c.StorageClassName).
		WithNodeTopology(applymeta.LabelSelector().WithMatchLabels(c.NodeTopology.MatchLabels)).
		WithCapacity(*c.Capacity).WithMaximumVolumeSize(*c.MaximumVolumeSize)
	if err := o.client.Apply(ctx, body, o.owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("writing capacity of StorageClass %s: %w", c.StorageClassName, err)
	}
	return nil
}

// DeleteCapacity implements Cluster.
func (o *Objects) DeleteCapacity(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	c := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name}}
	if err := o.client.Delete(ctx, c); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting capacity of a class that is not served: %w", err)
	}
	return nil
}
