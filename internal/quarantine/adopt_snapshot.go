package quarantine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// SnapshotAdoption asks for the object of a snapshot that is on a node.
type SnapshotAdoption struct {
	Node, Name string
	// PoolClass of the Snapshot; empty means its volume's, or else the only one that the
	// pool serves.
	PoolClass string
}

// AdoptSnapshot makes a Snapshot for a snapshot on a node, unless it is there, and says
// whether it did. The agent finds the data by the Snapshot and reports it.
func AdoptSnapshot(ctx context.Context, c client.Client, a SnapshotAdoption) (*v1alpha1.Snapshot, bool, error) {
	if !v1alpha1.IsSnapshotName(a.Name) {
		return nil, false, refuse("%s is the name of no snapshot", a.Name)
	}
	c = served.Guard(c)
	s := &v1alpha1.Snapshot{}
	err := c.Get(ctx, client.ObjectKey{Name: a.Name}, s)
	switch {
	case err == nil:
		return s, false, placed("Snapshot", s, s.Spec.Replicas, a.Node)
	case !apierrors.IsNotFound(err):
		return nil, false, unread("reading Snapshot "+a.Name, err)
	}
	if s, err = a.snapshot(ctx, c); err != nil {
		return nil, false, err
	}
	// Create does not replace a Snapshot that another client makes meanwhile.
	if err := c.Create(ctx, s); err != nil {
		return nil, false, fmt.Errorf("making Snapshot %s: %w", a.Name, err)
	}
	return s, true, nil
}

// snapshot returns a Snapshot that agrees with the record beside the data.
func (a SnapshotAdoption) snapshot(ctx context.Context, c client.Reader) (*v1alpha1.Snapshot, error) {
	n, err := reporting(ctx, c, a.Node, a.Name)
	if err != nil {
		return nil, err
	}
	if !n.Has(v1alpha1.FeatureAdoptedSnapshots) {
		return nil, refuse("node %s: its berth-agent does not say that it leaves adopted snapshots as they are: upgrade it", a.Node)
	}
	pool, orphan := item(n, a.Name)
	if !v1alpha1.IsVolumeName(orphan.Source) {
		return nil, refuse("the record of %s does not name the volume that it is of: it says %q", a.Name, orphan.Source)
	}
	s := &v1alpha1.Snapshot{Spec: v1alpha1.SnapshotSpec{
		Volume: orphan.Source, VolumeMode: v1alpha1.Block, Adopted: true,
		Replicas: []v1alpha1.ReplicaSpec{{Node: a.Node, Pool: pool.Name}},
	}}
	s.Name = a.Name
	s.Finalizers = []string{v1alpha1.SnapshotFinalizer}
	s.Labels = map[string]string{v1alpha1.ReplicaLabel(a.Node): ""}
	if orphan.Filesystem != "" {
		s.Spec.VolumeMode, s.Spec.FSType = v1alpha1.Filesystem, v1alpha1.FSType(orphan.Filesystem)
	}
	s.Spec.PoolClass, err = a.poolClass(ctx, c, pool, orphan.Source)
	return s, err
}

func (a SnapshotAdoption) poolClass(ctx context.Context, c client.Reader, pool v1alpha1.Pool, volume string) (string, error) {
	v := &v1alpha1.Volume{}
	err := c.Get(ctx, client.ObjectKey{Name: volume}, v)
	switch {
	case client.IgnoreNotFound(err) != nil: // also if the volume, and with it the data, is another driver's
		return "", unread("reading the snapshot's Volume "+volume, err)
	case a.PoolClass != "":
		return a.PoolClass, nil
	case err == nil:
		return v.Spec.PoolClass, nil
	}
	return onlyClass(pool)
}
