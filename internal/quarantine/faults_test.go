package quarantine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

var errAway = errors.New("connection refused")

// breaking is an API server on which one request fails, the first being number 1. It counts
// the requests, and the writes after the one that failed.
type breaking struct{ fails, asked, after int }

func (b *breaking) ask(write bool, do func() error) error {
	b.asked++
	if b.asked == b.fails {
		return errAway
	}
	if write && b.fails > 0 && b.asked > b.fails {
		b.after++
	}
	return do()
}

func (b *breaking) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return b.ask(false, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return b.ask(false, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return b.ask(true, func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return b.ask(true, func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return b.ask(true, func() error { return c.Delete(ctx, o, opts...) })
		},
	}
}

// waitingForPool is a snapshot that is being deleted, and whose data is lost with a pool.
func waitingForPool(pool string) *v1alpha1.Snapshot {
	s := photoOf("n1")
	s.DeletionTimestamp, s.Finalizers = &since, []string{v1alpha1.SnapshotFinalizer}
	s.Status.Replicas = []v1alpha1.SnapshotReplica{{Node: "n1", Pool: pool, State: v1alpha1.SnapshotFailed, Reason: v1alpha1.ReasonPoolMissing,
		Taken: &since, RestoreSize: new(resource.MustParse("2Gi"))}}
	return s
}

func TestAFailedAPIRequestEndsTheCommandWithItsError(t *testing.T) {
	slow, taken := "slow", orphaned(photo, from(lost))
	claim := claimed(first, "")
	claim.Spec.StorageClassName = &slow
	adopt := func(name string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			a := Adoption{Node: "n1", Name: lost}
			if name != "" {
				a.Claim = &corev1.ObjectReference{Namespace: "shop", Name: name}
			}
			_, err := Adopt(ctx, c, a)
			return err
		}
	}
	adoptSnapshot := func(ctx context.Context, c client.Client) error {
		_, _, err := AdoptSnapshot(ctx, c, SnapshotAdoption{Node: "n1", Name: photo})
		return err
	}
	forget := func(name string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			_, err := Forget(ctx, c, "n1", name, since.Time)
			return err
		}
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		do      func(context.Context, client.Client) error
	}{
		"adopting a volume":                           {[]client.Object{node(orphaned(lost)), claim}, adopt("db")},
		"adopting a volume with a PersistentVolume":   {[]client.Object{node(orphaned(lost)), exported(lost), storageClass("slow", "hdd")}, adopt("")},
		"adopting a volume for another claim":         {[]client.Object{volume(lost, "n1"), exported(lost, retained)}, adopt("db-copy")},
		"adopting a volume in place of a reservation": {[]client.Object{node(orphaned(lost)), withEntries(marked(volume(lost, "n2")))}, adopt("")},
		"adopting a snapshot":                         {[]client.Object{node(taken), ofClass("slow")}, adoptSnapshot},
		"forgetting a volume":                         {[]client.Object{node(orphaned(lost))}, forget(lost)},
		"forgetting a snapshot":                       {[]client.Object{node(taken)}, forget(photo)},
		"forgetting a snapshot that waits for a pool": {[]client.Object{node(), waitingForPool("vg0")}, forget(photo)},
		"forgetting a volume beside an earlier order": {[]client.Object{forgetting(node(orphaned(lost)), photo), waitingForPool("vg0")}, forget(lost)},
		"taking an order back": {[]client.Object{forgetting(node(orphaned(lost)), lost)}, func(ctx context.Context, c client.Client) error {
			_, err := Remember(ctx, c, "n1", lost)
			return err
		}},
		"forgetting a node": {[]client.Object{volume(lost, "n1"), photoOf("n1")}, func(ctx context.Context, c client.Client) error {
			_, err := ForgetNode(ctx, c, "n1")
			return err
		}},
		"listing": {nil, func(ctx context.Context, c client.Client) error {
			_, err := List(ctx, c)
			return err
		}},
		"looking an orphan up": {[]client.Object{node(orphaned(lost))}, func(ctx context.Context, c client.Client) error {
			_, err := Lookup(ctx, c, "n1", lost)
			return err
		}},
		"making a VolumeSnapshot": {nil, func(ctx context.Context, c client.Client) error {
			_, err := VolumeSnapshot(ctx, c, photoOf("n1"), types.NamespacedName{Namespace: "shop", Name: "nightly"})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				whole := &breaking{}
				if err := tc.do(t.Context(), cluster(t, whole.funcs(), copies(tc.objects)...)); err != nil || whole.asked == 0 {
					t.Fatalf("%v after %d requests", err, whole.asked)
				}
				for n := 1; n <= whole.asked; n++ {
					b := &breaking{fails: n}
					if err := tc.do(t.Context(), cluster(t, b.funcs(), copies(tc.objects)...)); !errors.Is(err, errAway) {
						t.Errorf("request %d of %d fails: error %v", n, whole.asked, err)
					}
					if b.after > 0 {
						t.Errorf("request %d of %d fails, and something is written after it", n, whole.asked)
					}
				}
			})
		})
	}
}

// copies of objects, for an API server of their own.
func copies(objects []client.Object) (own []client.Object) {
	for _, o := range objects {
		own = append(own, o.DeepCopyObject().(client.Object))
	}
	return own
}

// leaving is a reservation on another node that is being deleted, and that a finalizer keeps.
func leaving() *v1alpha1.Volume {
	v := withEntries(marked(volume(lost, "n2")))
	v.DeletionTimestamp, v.Finalizers = &since, []string{v1alpha1.VolumeFinalizer}
	return v
}

func TestAVolumeThatDoesNotMakeWayIsNotWaitedForForEver(t *testing.T) {
	for name, tc := range map[string]struct {
		patience time.Duration // of the caller
		want     error
	}{
		"the volume does not go": {time.Hour, ErrUnfinished},
		"the caller gives up":    {time.Second, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cluster(t, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					return errors.New("it is deleted once more")
				}}, node(orphaned(lost)), leaving())
				ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
				defer cancel()
				_, err := Adopt(ctx, c, Adoption{Node: "n1", Name: lost})
				if !errors.Is(err, tc.want) || strings.Count(err.Error(), "was deleted") != 1 {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func TestTheDataIsAdoptedOnceItsNodeReportsItWithoutTheVolumeThatMadeWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		c := cluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*v1alpha1.StorageNode); ok {
				if reads++; reads == 3 { // the agent reports
					n := &v1alpha1.StorageNode{}
					if err := c.Get(ctx, key, n); err != nil {
						return err
					}
					n.Status = node(orphaned(lost)).Status
					if err := c.Status().Update(ctx, n); err != nil {
						return err
					}
				}
			}
			return c.Get(ctx, key, o, opts...)
		}}, node(), withEntries(marked(volume(lost, "n2"))))
		if done, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost}); err != nil || !done.NewVolume {
			t.Errorf("%+v, %v", done, err)
		}
	})
}
