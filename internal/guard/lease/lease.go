package lease

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/ownership"
)

// surveyed is how long the guard goes on with the storage nodes that it saw last. A list that is
// older than the controller's costs a proof, never a writer: the controller counts only over the
// set that the lease names.
const surveyed = 30 * time.Second

// Lease is that of one node. It is renewed by one caller at a time.
type Lease struct {
	// Client asks the API server itself, without a cache.
	Client          client.Client
	Node, Namespace string
	// Boot is the id of this boot.
	Boot string
	// Address is where other guards may ask this one; empty if it answers no questions.
	Address string
	Now     func() time.Time

	// seen are the storage nodes, this one among them, and uid the Node's, both as of at.
	seen []string
	uid  types.UID
	at   time.Time
	// latest is what the last renewal left. A renewal names its version, so that one that arrives
	// late does not take the place of a later one, which may say something else of the watchdog.
	latest *coordinationv1.Lease
}

// Renew renews the lease once. It asks for what the renewal says when it knows the version that it
// replaces: who reads the lease relies on it that the renewal was sent after that version was stored.
// The guard learns then over which nodes it counts from now on.
func (l *Lease) Renew(ctx context.Context, says func(members []string) (guard.Renewal, error)) error {
	if err := l.survey(ctx); err != nil {
		return err
	}
	if err := l.read(ctx); err != nil {
		return err
	}
	renewal, err := says(l.seen)
	if err != nil {
		return err
	}
	next := l.latest.DeepCopy()
	l.fill(next, renewal)
	if next.ResourceVersion == "" {
		err = l.Client.Create(ctx, next)
	} else {
		err = l.Client.Update(ctx, next)
	}
	if err != nil {
		l.latest = nil // whatever became of it, the next attempt reads first
		return fmt.Errorf("writing the guard's lease: %w", err)
	}
	l.latest = next
	return nil
}

// read makes latest the lease as it is. A lease that is not there is made.
func (l *Lease) read(ctx context.Context) error {
	if l.latest != nil {
		return nil
	}
	found := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: v1alpha1.GuardLeasePrefix + l.Node}}
	if err := l.Client.Get(ctx, client.ObjectKeyFromObject(found), found); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the guard's lease: %w", err)
	}
	l.latest = found
	return nil
}

func (l *Lease) fill(o *coordinationv1.Lease, says guard.Renewal) {
	o.OwnerReferences = nil
	if l.uid != "" {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: l.Node, UID: l.uid}}
	}
	o.Annotations = map[string]string{
		v1alpha1.BootAnnotation:     l.Boot,
		v1alpha1.MembersAnnotation:  string(ownership.MembersOf(l.Node, l.seen)),
		v1alpha1.WatchdogAnnotation: strconv.FormatBool(says.Watchdog),
		v1alpha1.SentAnnotation:     says.Sent.String(),
		v1alpha1.SilentAnnotation:   says.Silent.String(),
	}
	if l.Address != "" {
		o.Annotations[v1alpha1.AddressAnnotation] = l.Address
	}
	o.Spec = coordinationv1.LeaseSpec{
		HolderIdentity:       new(l.Node),
		LeaseDurationSeconds: new(int32(ownership.SelfFenceAfter / time.Second)),
		RenewTime:            new(metav1.NewMicroTime(l.Now())),
	}
}

// survey lists the storage nodes now and then, and looks at the own Node. A Node that was deleted
// ends neither the lease nor the node's part in its majority.
func (l *Lease) survey(ctx context.Context) error {
	now := l.Now()
	if age := now.Sub(l.at); age >= 0 && age < surveyed {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("StorageNodeList"))
	if err := l.Client.List(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}); err != nil {
		return fmt.Errorf("listing storage nodes: %w", err)
	}
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	err := l.Client.Get(ctx, client.ObjectKey{Name: l.Node}, node)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the own Node: %w", err)
	}
	seen := []string{l.Node}
	for i := range list.Items {
		seen = append(seen, list.Items[i].Name)
	}
	slices.Sort(seen)
	l.seen, l.uid, l.at = slices.Compact(seen), node.UID, now
	return nil
}
