package quarantine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

var (
	// ErrRefused is wrapped by all refusals: no data was changed, and repeating the call as it is
	// will not help. Adopt may have deleted a Volume that must make way for the data before.
	ErrRefused = errors.New("refused")
	// ErrUnfinished says that a call has begun a change and must be repeated.
	ErrUnfinished = errors.New("not finished")
	// errUnlisted is the ErrRefused of a node that reports no orphan of the name.
	errUnlisted = fmt.Errorf("%w", ErrRefused)
)

// served is the driver of the data in pools, which this package is about.
var served = driver.Local()

// unread words an error of a read that decides about data. That an object is another driver's is
// a refusal.
func unread(doing string, err error) error {
	if errors.Is(err, driver.ErrForeign) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Lookup returns an orphan that a node reports, or data that is lost with its pool and whose
// object is being deleted. Its errors wrap ErrRefused if there is none, or more than one of the
// name.
func Lookup(ctx context.Context, c client.Reader, node, name string) (Orphan, error) {
	c = served.Live(c)
	n, err := storageNode(ctx, c, node)
	if err != nil {
		return Orphan{}, err
	}
	return lookupAny(ctx, c, n, name)
}

// lookupAny is lookup that also finds an object that is being deleted and waits for its pool.
func lookupAny(ctx context.Context, c client.Reader, n *v1alpha1.StorageNode, name string) (Orphan, error) {
	o, err := lookup(n, name)
	if err != nil {
		return waitingFor(ctx, c, n.Name, name, err)
	}
	return o, nil
}

func lookup(n *v1alpha1.StorageNode, name string) (Orphan, error) {
	var found []Orphan
	for _, o := range dataOf(n) {
		if o.Name == name {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return Orphan{}, fmt.Errorf("%w: node %s reports no orphan %s: `kubectl berth orphans` lists them", errUnlisted, n.Name, name)
	case 1:
		return found[0], nil
	}
	return Orphan{}, refuse("node %s has %s in pools %s and %s: which is the right one, only its bytes can tell", n.Name, name, found[0].Pool, found[1].Pool)
}

// Forget lets the agent of a node delete an orphan, which it returns. It refuses data
// that has an object, or a PersistentVolume. For data that is lost with its pool it lets
// the object go that is being deleted. A repeated call renews the entry in spec.forget.
func Forget(ctx context.Context, c client.Client, node, name string, now time.Time) (Orphan, error) {
	c = served.Guard(c)
	var o Orphan
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := storageNode(ctx, c, node)
		if err != nil {
			return err
		}
		if o, err = lookupAny(ctx, c, n, name); err != nil {
			return err
		}
		if o.Missing == MissingObject {
			if err := forgettable(ctx, c, o); err != nil {
				return err
			}
		}
		others, err := unheeded(ctx, c, n, o)
		if err != nil {
			return err
		}
		at := metav1.NewTime(now)
		n.Spec.Forget = append(others, v1alpha1.ForgottenOrphan{Pool: o.Pool, Name: o.Name, Size: o.Size, Since: *o.Since, At: at})
		o.Forgotten = &at
		return c.Update(ctx, n) // its version makes it a compare-and-swap with the report
	})
	if err != nil {
		return Orphan{}, fmt.Errorf("forgetting %s on node %s: %w", name, node, err)
	}
	return o, nil
}

// Remember takes back the word that an orphan may be deleted, and says whether there was one.
func Remember(ctx context.Context, c client.Client, node, name string) (bool, error) {
	was := false
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := storageNode(ctx, c, node)
		if err != nil {
			return err
		}
		kept := slices.DeleteFunc(slices.Clone(n.Spec.Forget), func(f v1alpha1.ForgottenOrphan) bool { return f.Name == name })
		if was = len(kept) < len(n.Spec.Forget); !was {
			return nil
		}
		n.Spec.Forget = kept
		return c.Update(ctx, n)
	})
	if err != nil {
		return false, fmt.Errorf("taking back that %s on node %s may be deleted: %w", name, node, err)
	}
	return was, nil
}

func forgettable(ctx context.Context, c client.Reader, o Orphan) error {
	var object client.Object = &v1alpha1.Volume{}
	if v1alpha1.IsSnapshotName(o.Name) {
		object = &v1alpha1.Snapshot{}
	}
	err := c.Get(ctx, client.ObjectKey{Name: o.Name}, object)
	switch {
	case err == nil && o.Reason == string(v1alpha1.OrphanNotPlaced):
		return refuse("there is an object %s, perhaps of an old backup, that does not know of node %s: "+
			"as long as there is, its data is nowhere deleted but by it", o.Name, o.Node)
	case err == nil:
		return refuse("there is an object %s again: delete that, and its data goes with it", o.Name)
	case !apierrors.IsNotFound(err):
		return unread("looking for the object of the data", err)
	}
	if v1alpha1.IsSnapshotName(o.Name) {
		content, err := contentOf(ctx, c, o.Name)
		if err == nil && content != "" {
			err = refuse("VolumeSnapshotContent %s refers to it: adopt it, or delete the VolumeSnapshotContent first", content)
		}
		return err
	}
	pv, err := exportedBy(ctx, c, o.Name)
	if err == nil && pv != nil {
		err = refuse("PersistentVolume %s refers to it: adopt it, or delete the PersistentVolume first", pv.Name)
	}
	return err
}

// unheeded returns the entries of spec.forget, except one for the given orphan, that the agent may
// still act on: it reports the orphan, or an object that is being deleted waits for the lost pool.
// All others have been carried out, or are about data that has changed since.
func unheeded(ctx context.Context, c client.Reader, n *v1alpha1.StorageNode, but Orphan) (open []v1alpha1.ForgottenOrphan, err error) {
	reported := dataOf(n)
	for _, f := range n.Spec.Forget {
		if f.Pool == but.Pool && f.Name == but.Name {
			continue
		}
		if slices.ContainsFunc(reported, func(o Orphan) bool { return o.Pool == f.Pool && o.Name == f.Name && o.Forgotten != nil }) {
			open = append(open, f)
			continue
		}
		lost, err := waitingFor(ctx, c, n.Name, f.Name, ErrRefused)
		switch {
		case errors.Is(err, driver.ErrForeign): // for another command to say
			open = append(open, f)
		case errors.Is(err, ErrRefused): // no object waits
		case err != nil:
			return nil, err
		case lost.Pool == f.Pool && lost.Since.Equal(&f.Since):
			open = append(open, f)
		}
	}
	return open, nil
}

// forgotten returns the index in spec.forget of an orphan exactly as it is reported, or -1.
func forgotten(n *v1alpha1.StorageNode, pool, name string, o *v1alpha1.Orphan) int {
	return slices.IndexFunc(n.Spec.Forget, func(f v1alpha1.ForgottenOrphan) bool {
		return f.Pool == pool && f.Name == name && f.Since.Equal(&o.Since) && f.Size.Cmp(o.Size) == 0
	})
}

func storageNode(ctx context.Context, c client.Reader, node string) (*v1alpha1.StorageNode, error) {
	n := &v1alpha1.StorageNode{}
	err := c.Get(ctx, client.ObjectKey{Name: node}, n)
	if apierrors.IsNotFound(err) {
		return nil, refuse("node %s does not report: is there such a node, and does berth-agent run on it?", node)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what node %s reports: %w", node, err)
	}
	return n, nil
}

// exportedBy is the PersistentVolume of a volume, nil if there is none.
func exportedBy(ctx context.Context, c client.Reader, name string) (*corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	for i := range list.Items {
		if served.Handle(&list.Items[i]) == name {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}
