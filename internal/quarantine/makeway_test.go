package quarantine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
)

func withEntries(v *v1alpha1.Volume, entries ...v1alpha1.ReplicaStatus) *v1alpha1.Volume {
	v.UID, v.Status.Replicas = "older", entries
	return v
}

func marked(v *v1alpha1.Volume) *v1alpha1.Volume {
	v.Annotations = map[string]string{v1alpha1.ReservedAnnotation: ""}
	return v
}

func TestAVolumeWithoutDataMakesWayForTheOrphanOfItsName(t *testing.T) {
	blank := v1alpha1.ReplicaStatus{Node: "n2", State: v1alpha1.ReplicaReady, Ready: true, Capacity: new(resource.MustParse("1Gi"))}
	refused := v1alpha1.ReplicaStatus{Node: "n2", State: v1alpha1.ReplicaFailed, Reason: v1alpha1.ReasonNoSpace}
	conflict := v1alpha1.ReplicaStatus{Node: "n1", State: v1alpha1.ReplicaFailed, Reason: v1alpha1.ReasonConflict}
	noRoom, settled, apart := conflict, conflict, conflict
	noRoom.Reason, settled.State, apart.State = v1alpha1.ReasonNoSpace, v1alpha1.ReplicaReady, v1alpha1.ReplicaGone
	found := blank
	found.Reason = v1alpha1.ReasonFound
	adopted := volume(lost, "n2")
	adopted.Spec.Adopted = true
	for name, tc := range map[string]struct {
		volume *v1alpha1.Volume
		stays  bool
	}{
		"the node reports a conflict with the data":                      {volume: withEntries(volume(lost, "n1"), conflict)},
		"the volume is a reservation on another node":                    {volume: withEntries(marked(volume(lost, "n2")), blank)},
		"the volume is a reservation on no node":                         {volume: withEntries(marked(volume(lost)))},
		"the volume is on no node, and no node has data":                 {volume: withEntries(volume(lost), refused)},
		"another node has data of the volume":                            {volume: withEntries(volume(lost, "n2"), blank), stays: true},
		"another node was asked to make the volume":                      {volume: withEntries(volume(lost, "n2")), stays: true},
		"another node has found data of the name":                        {volume: withEntries(marked(volume(lost, "n2")), found), stays: true},
		"the volume is on no node, and another node had data":            {volume: withEntries(volume(lost), blank), stays: true},
		"the volume was adopted on another node":                         {volume: withEntries(adopted), stays: true},
		"the volume is a reservation on the same node":                   {volume: withEntries(marked(volume(lost, "n1"))), stays: true},
		"the volume is on no node, and the entry of one node shows data": {volume: withEntries(volume(lost), blank, refused), stays: true},
		"the node has no room for the volume":                            {volume: withEntries(volume(lost, "n1"), noRoom), stays: true},
		"the node kept the data apart from the volume":                   {volume: withEntries(volume(lost, "n2"), apart), stays: true},
		"the node has the volume after a conflict":                       {volume: withEntries(volume(lost, "n1"), settled), stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, node(orphaned(lost)), tc.volume)
			done, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost})
			v := &v1alpha1.Volume{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: lost}, v); err != nil {
				t.Fatal(err)
			}
			if tc.stays {
				if !errors.Is(err, ErrRefused) || v.UID != "older" {
					t.Errorf("error %v, volume %+v", err, v)
				}
				return
			}
			if err != nil || !done.NewVolume || !v.Spec.Adopted || v.Spec.Replicas[0].Node != "n1" {
				t.Errorf("error %v, volume %+v", err, v.Spec)
			}
		})
	}
}

func TestAVolumeThatHasDataIsNotReplacedThoughTheNodeSaysThatTheDataIsNotIts(t *testing.T) {
	conflict := v1alpha1.ReplicaStatus{Node: "n1", State: v1alpha1.ReplicaFailed, Reason: v1alpha1.ReasonConflict}
	adopted := withEntries(volume(lost, "n1"), conflict)
	adopted.Spec.Adopted = true
	for name, v := range map[string]*v1alpha1.Volume{
		"another node has the data": withEntries(volume(lost, "n1", "n2"), conflict,
			v1alpha1.ReplicaStatus{Node: "n2", State: v1alpha1.ReplicaReady, Capacity: new(resource.MustParse("1Gi"))}),
		"the volume was adopted": adopted,
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, node(orphaned(lost)), exported(lost), v)
			if done, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost}); err != nil || done.NewVolume || done.Volume.UID != "older" {
				t.Errorf("%+v, %v", done, err)
			}
		})
	}
}

func TestAVolumeMakesWayOnlyIfItIsAsItWasWhenThatWasDecided(t *testing.T) {
	for name, change := range map[string]func(context.Context, client.Client, *v1alpha1.Volume) error{
		"the node makes the volume meanwhile": func(ctx context.Context, c client.Client, v *v1alpha1.Volume) error {
			v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "n2", State: v1alpha1.ReplicaReady}}
			delete(v.Annotations, v1alpha1.ReservedAnnotation)
			return errors.Join(c.Status().Update(ctx, v.DeepCopy()), c.Patch(ctx, v, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))))
		},
		"another client replaces the volume meanwhile": func(ctx context.Context, c client.Client, v *v1alpha1.Volume) error {
			next := volume(lost, "n2")
			next.UID = "newer"
			return errors.Join(c.Delete(ctx, v), c.Create(ctx, next))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := lagging.New(t, node(orphaned(lost)), withEntries(marked(volume(lost, "n2"))))
			server.Before = func(w lagging.Write) error {
				server.Before = nil
				v := &v1alpha1.Volume{}
				return errors.Join(server.Live().Get(t.Context(), client.ObjectKeyFromObject(w.Object), v), change(t.Context(), server.Others(), v))
			}
			if _, err := Adopt(t.Context(), server.Client(), Adoption{Node: "n1", Name: lost}); !errors.Is(err, ErrRefused) {
				t.Errorf("error %v, want a refusal", err)
			}
			if err := server.Live().Get(t.Context(), client.ObjectKey{Name: lost}, &v1alpha1.Volume{}); err != nil {
				t.Errorf("the volume of another node is gone: %v", err)
			}
		})
	}
}

func TestADataLostWithItsPoolIsForgottenOnlyWhenItsObjectIsBeingDeleted(t *testing.T) {
	waiting := v1alpha1.ReplicaStatus{Node: "n1", Pool: "vg0", State: v1alpha1.ReplicaFailed, Reason: v1alpha1.ReasonPoolMissing, Capacity: new(resource.MustParse("1Gi"))}
	never := waiting
	never.Capacity = nil
	there, broken, copying := waiting, waiting, waiting
	there.State, there.Reason = v1alpha1.ReplicaReady, v1alpha1.ReasonCarved
	broken.Reason, copying.State = v1alpha1.ReasonDeviceMissing, v1alpha1.ReplicaCopying
	for name, tc := range map[string]struct {
		entry    v1alpha1.ReplicaStatus
		deleting bool
		said     bool
	}{
		"the volume waits for the missing pool":       {entry: waiting, deleting: true, said: true},
		"the volume is not being deleted":             {entry: waiting},
		"the volume was never made":                   {entry: never, deleting: true},
		"the volume exists":                           {entry: there, deleting: true},
		"the pool exists without the data":            {entry: broken, deleting: true},
		"the volume is being copied":                  {entry: copying, deleting: true},
		"the volume waits for a pool of another node": {entry: func(e v1alpha1.ReplicaStatus) v1alpha1.ReplicaStatus { e.Node = "n2"; return e }(waiting), deleting: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := withEntries(volume(lost, "n1"), tc.entry)
			if tc.deleting {
				v.DeletionTimestamp, v.Finalizers = &since, []string{v1alpha1.VolumeFinalizer}
			}
			c := cluster(t, interceptor.Funcs{}, node(), v)
			_, err := Forget(t.Context(), c, "n1", lost, since.Time)
			if tc.said != (err == nil) || !tc.said && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "reports no orphan")) {
				t.Fatalf("error %v", err)
			}
			n := &v1alpha1.StorageNode{}
			if err := c.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Name: "n1"}, n); err != nil {
				t.Fatal(err)
			}
			if tc.said != (len(n.Spec.Forget) == 1) {
				t.Fatalf("the word is %+v", n.Spec.Forget)
			}
			if tc.said && (!n.Spec.Forget[0].Since.Equal(&since) || n.Spec.Forget[0].Pool != "vg0") {
				t.Errorf("the word is %+v", n.Spec.Forget[0])
			}
		})
	}
}

func TestASnapshotLostWithItsPoolIsForgottenOnlyWhenItsObjectIsBeingDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Snapshot)
		said   bool
	}{
		"the snapshot waits for the missing pool":       {change: func(*v1alpha1.Snapshot) {}, said: true},
		"the snapshot is not being deleted":             {change: func(s *v1alpha1.Snapshot) { s.DeletionTimestamp = nil }},
		"the snapshot was never taken":                  {change: func(s *v1alpha1.Snapshot) { s.Status.Replicas[0].Taken = nil }},
		"the snapshot exists":                           {change: func(s *v1alpha1.Snapshot) { s.Status.Replicas[0].State = v1alpha1.SnapshotReady }},
		"the pool exists without the data":              {change: func(s *v1alpha1.Snapshot) { s.Status.Replicas[0].Reason = v1alpha1.ReasonDeviceMissing }},
		"the snapshot waits for a pool of another node": {change: func(s *v1alpha1.Snapshot) { s.Status.Replicas[0].Node = "n2" }},
	} {
		t.Run(name, func(t *testing.T) {
			s := waitingForPool("vg0")
			tc.change(s)
			c := cluster(t, interceptor.Funcs{}, node(), s)
			o, err := Forget(t.Context(), c, "n1", photo, since.Time)
			if tc.said != (err == nil) || !tc.said && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "reports no orphan")) {
				t.Fatalf("error %v", err)
			}
			if tc.said && (o.Pool != "vg0" || o.Size.String() != "2Gi") {
				t.Errorf("it is %+v", o)
			}
			if tc.said != (len(named(t, c)) == 1) {
				t.Errorf("the node is to forget %v", named(t, c))
			}
		})
	}
}
