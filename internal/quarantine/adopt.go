package quarantine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/storageclass"
)

// Adoption asks for the objects of data that is on a node.
type Adoption struct {
	Node, Name string
	// PoolClass of the Volume; empty means the one of the PersistentVolume that is there, or
	// else the only one that the pool serves, or else that of the Volume that makes way.
	PoolClass string
	// StorageClass of the PersistentVolume that is made; empty means the claim's.
	StorageClass string
	// Claim that the PersistentVolume is kept for; nil leaves it to any that matches.
	Claim *corev1.ObjectReference
}

// Adopted is the result of an Adoption.
type Adopted struct {
	Volume           *v1alpha1.Volume
	PersistentVolume *corev1.PersistentVolume
	// NewVolume and NewPersistentVolume say which of them were made now.
	NewVolume, NewPersistentVolume bool
	// Rebound is whether the PersistentVolume was there and is kept for another claim now.
	Rebound bool
}

// Adopt makes a Volume for data, and a PersistentVolume that retains it, unless they are
// there. The new Volume takes the place of one that is superseded. The agent finds the data
// by the Volume and reports it. A PersistentVolume that is there and whose claim is gone is
// kept for the claim that was asked for.
func Adopt(ctx context.Context, c client.Client, a Adoption) (Adopted, error) {
	if !v1alpha1.IsVolumeName(a.Name) {
		return Adopted{}, refuse("%s is the name of no volume", a.Name)
	}
	c = served.Guard(c)
	pv, err := exportedBy(ctx, c, a.Name)
	if err != nil {
		return Adopted{}, err
	}
	rebinds, err := a.rebinds(ctx, c, pv)
	if err == nil {
		err = cmp.Or(a.vacant(ctx, c, pv), a.unused(ctx, c, pv))
	}
	if err != nil {
		return Adopted{}, err
	}
	done := Adopted{PersistentVolume: pv}
	var replaced *v1alpha1.Volume
	if done.Volume, replaced, err = standing(ctx, c, a, pv); err == nil && done.Volume == nil {
		done.Volume, err = a.make(ctx, c, pv, replaced)
		done.NewVolume = true
	}
	if err != nil {
		return Adopted{}, a.afterwards(replaced, err)
	}
	switch {
	case pv == nil:
		err = a.export(ctx, c, &done)
	case rebinds:
		err = a.rebind(ctx, c, pv)
		done.Rebound = err == nil
	}
	return done, err
}

// export makes the PersistentVolume of an adopted Volume.
func (a Adoption) export(ctx context.Context, c client.Client, done *Adopted) error {
	v := done.Volume
	if !v.Spec.Adopted && v.Found() == "" && !meta.IsStatusConditionTrue(v.Status.Conditions, v1alpha1.ConditionOrphaned) {
		return refuse("Volume %s was not adopted: its PersistentVolume may be on the way", a.Name)
	}
	pv, err := a.persistentVolume(ctx, c, v)
	if err != nil {
		return err
	}
	if err := c.Create(ctx, pv); err != nil {
		return fmt.Errorf("making PersistentVolume %s, after Volume %s was made: %w", pv.Name, a.Name, err)
	}
	done.PersistentVolume, done.NewPersistentVolume = pv, true
	return nil
}

// present returns the Volume of that name, of the node's data or superseded; nil if there is none.
func present(ctx context.Context, c client.Reader, a Adoption) (*v1alpha1.Volume, error) {
	v := &v1alpha1.Volume{}
	err := c.Get(ctx, client.ObjectKey{Name: a.Name}, v)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, unread("reading Volume "+a.Name, err)
	}
	if superseded(v, a.Node) {
		return v, nil
	}
	if err := placed("Volume", v, v.Spec.Replicas, a.Node); err != nil {
		return nil, err
	}
	return v, nil
}

// placed refuses an object that exists and does not belong to the node's data.
func placed(kind string, o client.Object, at []v1alpha1.ReplicaSpec, node string) error {
	if o.GetDeletionTimestamp() != nil {
		return refuse("%s %s is being deleted, and its data with it", kind, o.GetName())
	}
	var nodes []string
	for _, r := range at {
		if r.Node == node {
			return nil
		}
		nodes = append(nodes, r.Node)
	}
	return refuse("%s %s exists and is on %s: what node %s has may be older, and is left alone",
		kind, o.GetName(), cmp.Or(strings.Join(nodes, ", "), "no node yet"), node)
}

// reporting returns the node that lists an orphan exactly once, if the orphan may be adopted.
func reporting(ctx context.Context, c client.Reader, node, name string) (*v1alpha1.StorageNode, error) {
	n, err := storageNode(ctx, c, node)
	if err != nil {
		return nil, err
	}
	for _, f := range n.Spec.Forget {
		if f.Name == name {
			return nil, refuse("%s is to be deleted: take that back first with `kubectl berth forget --undo %s %s`", name, node, name)
		}
	}
	if _, err := lookup(n, name); err != nil {
		return nil, err
	}
	return n, nil
}

// volume returns a Volume that agrees with the record beside the data. replaced is the one that
// makes way for it; nil if there is none.
func (a Adoption) volume(ctx context.Context, c client.Reader, pv *corev1.PersistentVolume, replaced *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	n, err := reporting(ctx, c, a.Node, a.Name)
	if err != nil {
		return nil, err
	}
	pool, orphan := item(n, a.Name)
	v := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{
		Capacity: orphan.Size, Adopted: true, VolumeMode: v1alpha1.Block,
		Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementNode, Replication: v1alpha1.Replication{Factor: 1},
		Replicas: []v1alpha1.ReplicaSpec{{Node: a.Node, Pool: pool.Name}},
		ClaimRef: a.claimRef(pv), Source: sourceOf(orphan),
	}}
	v.Name = a.Name
	v.Finalizers = []string{v1alpha1.VolumeFinalizer}
	v.Labels = map[string]string{v1alpha1.ReplicaLabel(a.Node): ""}
	if orphan.Filesystem != "" {
		v.Spec.VolumeMode, v.Spec.FSType = v1alpha1.Filesystem, v1alpha1.FSType(orphan.Filesystem)
	}
	if err := suits(v, pv); err != nil {
		return nil, err
	}
	v.Spec.PoolClass, err = a.poolClass(ctx, c, pool, pv)
	if errors.Is(err, ErrRefused) && replaced != nil {
		v.Spec.PoolClass, err = replaced.Spec.PoolClass, nil
	}
	return v, err
}

// make makes that Volume.
func (a Adoption) make(ctx context.Context, c client.Client, pv *corev1.PersistentVolume, replaced *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	v, err := a.volume(ctx, c, pv, replaced)
	if err != nil {
		return nil, err
	}
	if err := c.Create(ctx, v); err != nil {
		return nil, fmt.Errorf("making Volume %s: %w", a.Name, err)
	}
	return v, nil
}

// item returns an orphan that is known to be reported once, with its pool.
func item(n *v1alpha1.StorageNode, name string) (v1alpha1.Pool, *v1alpha1.Orphan) {
	for _, p := range n.Status.Pools {
		for _, i := range p.Inventory {
			if i.Volume+i.Snapshot == name && i.Orphan != nil {
				return p, i.Orphan
			}
		}
	}
	return v1alpha1.Pool{}, &v1alpha1.Orphan{}
}

func sourceOf(o *v1alpha1.Orphan) *v1alpha1.VolumeSource {
	switch {
	case v1alpha1.IsSnapshotName(o.Source):
		return &v1alpha1.VolumeSource{Snapshot: o.Source}
	case o.Source != "":
		return &v1alpha1.VolumeSource{Volume: o.Source}
	}
	return nil
}

// suits refuses a Volume that differs from the promise of its PersistentVolume.
func suits(v *v1alpha1.Volume, pv *corev1.PersistentVolume) error {
	if pv == nil {
		return nil
	}
	block := pv.Spec.VolumeMode != nil && *pv.Spec.VolumeMode == corev1.PersistentVolumeBlock
	switch {
	case !block && v.Spec.VolumeMode == v1alpha1.Block:
		return refuse("PersistentVolume %s promises a filesystem, and none was ever made on the data: if it was never used, forget it", pv.Name)
	case block && v.Spec.VolumeMode != v1alpha1.Block:
		return refuse("PersistentVolume %s promises a block device, and the data has filesystem %s", pv.Name, v.Spec.FSType)
	}
	return nil
}

// claimRef names the claim. It sets the uid only if the volume's name has it: with another
// uid the Volume would be taken for one whose claim is gone.
func (a Adoption) claimRef(pv *corev1.PersistentVolume) *v1alpha1.ClaimReference {
	ref := a.Claim
	if ref == nil && pv != nil {
		ref = pv.Spec.ClaimRef
	}
	if ref == nil {
		return nil
	}
	claim := &v1alpha1.ClaimReference{Namespace: ref.Namespace, Name: ref.Name}
	if v1alpha1.VolumeName("pvc-"+string(ref.UID)) == a.Name {
		claim.UID = ref.UID
	}
	return claim
}

func (a Adoption) poolClass(ctx context.Context, c client.Reader, pool v1alpha1.Pool, pv *corev1.PersistentVolume) (string, error) {
	if a.PoolClass != "" {
		return a.PoolClass, nil
	}
	if pv != nil && pv.Spec.StorageClassName != "" {
		sc := &storagev1.StorageClass{}
		err := c.Get(ctx, client.ObjectKey{Name: pv.Spec.StorageClassName}, sc)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("reading StorageClass %s: %w", pv.Spec.StorageClassName, err)
		}
		// A StorageClass that does not exist has no parameters, and names no PoolClass.
		if parameters, invalid := storageclass.Parse(sc.Parameters); invalid == nil {
			return parameters.PoolClass, nil
		}
	}
	return onlyClass(pool)
}

func onlyClass(pool v1alpha1.Pool) (string, error) {
	if len(pool.Classes) == 1 {
		return pool.Classes[0], nil
	}
	return "", refuse("pool %s serves these PoolClasses: [%s]: say which it is with --pool-class", pool.Name, strings.Join(pool.Classes, ", "))
}
