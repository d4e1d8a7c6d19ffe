package oversight

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/usecase"
)

func TestAWishFailsOfWhichAReadOrAWriteFails(t *testing.T) {
	deleting := func(w *world) {
		if err := w.server.Others().Delete(w.t.Context(), w.volume()); err != nil {
			w.t.Fatal(err)
		}
	}
	unread := func(kind runtime.Object) func(w *world, r *Reconciler) {
		return func(_ *world, r *Reconciler) { r.Client = lagging.Unread{Client: r.Client, Kind: &kind, Err: errAway} }
	}
	refused := func(answer error) func(w *world, r *Reconciler) {
		return func(w *world, _ *Reconciler) {
			w.server.Before = func(wr lagging.Write) error {
				if wr.Verb == "update status" {
					return answer
				}
				return nil
			}
		}
	}
	conflict := apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("volumes").GroupResource(), id, nil)
	for name, tc := range map[string]struct {
		volume             *ownership.Volume
		disturb            func(w *world, r *Reconciler)
		publish, unpublish error
	}{
		"the storage node cannot be read": {unused(), unread(&v1alpha1.StorageNode{}), errAway, nil},
		"the volume cannot be read":       {unused(), unread(&v1alpha1.Volume{}), errAway, errAway},
		"the pods cannot be read":         {unused(), unread(&corev1.PodList{}), errAway, errAway},
		"the record cannot be written":    {unused(func(v *ownership.Volume) { v.ExpireAt = time.Now().Add(time.Hour).UTC() }), refused(errAway), errAway, nil},
		"the record changes all the time": {unused(func(v *ownership.Volume) { v.ExpireAt = time.Now().Add(time.Hour).UTC() }), refused(conflict), usecase.ErrBusy, nil},
		"the volume is being deleted":     {shared(phase(ownership.Released)), func(w *world, _ *Reconciler) { deleting(w) }, usecase.ErrBusy, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, tc.volume), func(w *world) {
				r := Wishes{w.controller(func(r *Reconciler) { r.Places = given{"n1": {Fits: true, Slots: 1}, "n2": {Fits: true, Slots: 1}} })}
				w.passes(time.Minute)
				tc.disturb(w, r.Reconciler)
				if err := r.Publish(w.t.Context(), id, "n2"); !errors.Is(err, tc.publish) {
					t.Errorf("publishing it: %v", err)
				}
				if err := r.Unpublish(w.t.Context(), id, "n2"); !errors.Is(err, tc.unpublish) {
					t.Errorf("unpublishing it: %v", err)
				}
			})
		})
	}
}

func TestADiskThatNoNodeEverHadIsPublishedWithItsFirstRecord(t *testing.T) {
	objects := cluster(t, shared())
	objects[0].(*v1alpha1.Volume).Status.Ownership = nil
	for name, write := range map[string]error{"written": nil, "not written": errAway} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, objects, func(w *world) {
				r := Wishes{w.controller(func(r *Reconciler) {
					r.FreshID, r.Places = func() string { return "fresh" }, given{"n2": {Fits: true, Slots: 1}}
				})}
				w.passes(time.Minute)
				w.server.Before = func(lagging.Write) error { return write }
				if err := r.Publish(w.t.Context(), id, "n2"); !errors.Is(err, write) {
					t.Errorf("publishing it: %v", err)
				}
				if o := w.volume().Status.Ownership; (o == nil) != (write != nil) || o != nil && w.attachments() != "n2 Reserved" {
					t.Errorf("the record is %+v", o)
				}
				if err := r.Unpublish(w.t.Context(), id, "n1"); !errors.Is(err, write) {
					t.Errorf("unpublishing it: %v", err)
				}
			})
		})
	}
}

func TestAVolumeWithoutARecordIsPublishedNowhere(t *testing.T) {
	objects := cluster(t, copies()) // without places they have no first record
	objects[0].(*v1alpha1.Volume).Status.Ownership = nil
	inWorld(t, objects, func(w *world) {
		if err := (Wishes{w.controller()}).Unpublish(w.t.Context(), id, "n1"); err != nil {
			t.Error(err)
		}
	})
}

func TestAVolumeOfWhichTheRecordIsNotReadIsNotSaidToBePublishedNowhere(t *testing.T) {
	inWorld(t, cluster(t, shared(phase(ownership.Released))), func(w *world) {
		r, read := w.controller(), 0
		w.passes(time.Minute)
		w.oversees(r)
		r.Live.(*reads).before = func(o runtime.Object) error {
			if _, is := o.(*v1alpha1.Volume); is {
				read++
			}
			return nil
		}
		w.oversees(r)
		last := read + 1 // the same questions, and one more
		read = 0
		r.Live.(*reads).before = func(o runtime.Object) error {
			if _, is := o.(*v1alpha1.Volume); is {
				if read++; read == last {
					return errAway
				}
			}
			return nil
		}
		if err := (Wishes{r}).Unpublish(w.t.Context(), id, "n1"); !errors.Is(err, errAway) {
			t.Errorf("after %d reads: %v", read, err)
		}
	})
}
