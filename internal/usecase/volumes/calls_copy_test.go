package volumes_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/storageclass"
	"berth.dev/berth/internal/usecase/volumes"
	"berth.dev/berth/internal/usecase/volumetest"
)

const (
	sourceID = "pvc-00000000-0000-0000-0000-000000000002"
	photoID  = "snap-00000000-0000-0000-0000-000000000003"
)

// source is a volume of 1Gi with xfs on node m, of which a copy can be made.
func source(options ...volumetest.Option) *v1alpha1.Volume {
	v := existing(append([]volumetest.Option{wanted("m"), carved("m")}, options...)...)
	v.Name, v.UID, v.Spec.FSType = sourceID, "source", v1alpha1.XFS
	v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: "source", UID: "source"}
	return v
}

// photo is a snapshot of 1Gi with xfs on node m.
func photo(state v1alpha1.SnapshotState) *v1alpha1.Snapshot {
	o := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: photoID}}
	o.Spec.VolumeMode, o.Spec.FSType, o.Spec.Replicas = v1alpha1.Filesystem, v1alpha1.XFS, []v1alpha1.ReplicaSpec{{Node: "m", Pool: "vg"}}
	o.Status.Replicas = []v1alpha1.SnapshotReplica{{Node: "m", Pool: "vg", State: state, RestoreSize: bytes(gi)}}
	return o
}

// photoWith is a snapshot that is ready, but for a change.
func photoWith(change func(o *v1alpha1.Snapshot)) *v1alpha1.Snapshot {
	o := photo(v1alpha1.SnapshotReady)
	change(o)
	return o
}

func copyOf(s v1alpha1.VolumeSource, allowed ...string) volumes.Request {
	r := request(allowed...)
	r.Source, r.FSType = &s, ""
	r.Topology.Preferred = []string{"n"}
	return r
}

func TestACopyIsMadeWhereItsSourceIs(t *testing.T) {
	for name, r := range map[string]volumes.Request{
		"a copy of a volume":   copyOf(v1alpha1.VolumeSource{Volume: sourceID}),
		"a copy of a snapshot": copyOf(v1alpha1.VolumeSource{Snapshot: photoID}, "n", "m"),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				got, err := s.Create(within(t), r)
				if err != nil || got.FSType != v1alpha1.XFS || *got.Source != *r.Source {
					t.Errorf("%+v, %v", got, err)
				}
				s.on("m")
			}, source(), photo(v1alpha1.SnapshotReady))
		})
	}
}

func TestACopyOfABlockVolumeHasNoFilesystem(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		r := copyOf(v1alpha1.VolumeSource{Volume: sourceID})
		r.Mode = v1alpha1.Block
		got, err := s.Create(within(t), r)
		if err != nil || got.FSType != "" || got.Mode != v1alpha1.Block {
			t.Errorf("%+v, %v", got, err)
		}
		s.on("m")
	}, func() client.Object {
		o := source(func(v *v1alpha1.Volume) { v.Spec.VolumeMode = v1alpha1.Block })
		o.Spec.FSType = ""
		return o
	}())
}

func TestAnImpossibleCopyIsRefusedAndLeavesNothing(t *testing.T) {
	fromVolume, fromSnapshot := v1alpha1.VolumeSource{Volume: sourceID}, v1alpha1.VolumeSource{Snapshot: photoID}
	drop := func(o client.Object) func(s *stage) {
		return func(s *stage) { s.Hold(); s.remove(o) }
	}
	older := func(s *stage) { s.replaceAgent("m") }
	for name, test := range map[string]struct {
		request volumes.Request
		source  client.Object
		prepare func(s *stage)
		class   error
	}{
		"the node of the source is not allowed": {copyOf(fromVolume, "n"), source(), nil, volumes.ErrUnplaceable},
		"the source is gone":                    {copyOf(fromVolume), source(), drop(source()), provision.ErrNotFound},
		"the source is being deleted":           {copyOf(fromVolume), source(deleting), nil, provision.ErrNotFound},
		"no node has reported the source":       {copyOf(fromVolume), source(func(v *v1alpha1.Volume) { v.Status.Replicas = nil }), nil, provision.ErrUnavailable},
		"the source is not ready":               {copyOf(fromVolume), source(func(v *v1alpha1.Volume) { v.Status.Replicas[0].Ready = false }), nil, provision.ErrUnavailable},
		"the source has no size":                {copyOf(fromVolume), source(func(v *v1alpha1.Volume) { v.Status.Replicas[0].Capacity = nil }), nil, provision.ErrUnavailable},
		"the source has a foreign name":         {copyOf(v1alpha1.VolumeSource{Volume: "theirs"}), source(), nil, provision.ErrNotFound},
		"the source has another mode":           {copyOf(fromVolume), source(func(v *v1alpha1.Volume) { v.Spec.VolumeMode = v1alpha1.Block }), nil, provision.ErrInvalid},
		"the source is larger than the limit": {func() volumes.Request {
			r := copyOf(fromVolume)
			r.Size = volumes.Size{Limit: 512 * volumetest.Mi}
			return r
		}(), source(), nil, volumes.ErrOutOfRange},
		"the class does not select the pool of the source": {copyOf(fromVolume), source(func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = "other" }), nil, provision.ErrInvalid},
		"the pool of the source is gone":                   {copyOf(fromVolume), source(func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = "vg9" }), nil, volumes.ErrUnplaceable},
		"the agent is too old for copies by now":           {copyOf(fromVolume), source(), older, provision.ErrUnavailable},
		"the snapshot is gone":                             {copyOf(fromSnapshot), photo(v1alpha1.SnapshotReady), drop(photo(v1alpha1.SnapshotReady)), provision.ErrNotFound},
		"the snapshot is being deleted": {copyOf(fromSnapshot), photoWith(func(o *v1alpha1.Snapshot) {
			o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: time.Unix(1000, 0)}, []string{v1alpha1.SnapshotFinalizer}
		}), nil, provision.ErrNotFound},
		"the snapshot has no size":                       {copyOf(fromSnapshot), photoWith(func(o *v1alpha1.Snapshot) { o.Status.Replicas[0].RestoreSize = nil }), nil, provision.ErrUnavailable},
		"no node has the snapshot":                       {copyOf(fromSnapshot), photoWith(func(o *v1alpha1.Snapshot) { o.Status.Replicas = nil }), nil, provision.ErrUnavailable},
		"the snapshot is not ready":                      {copyOf(fromSnapshot), photo(v1alpha1.SnapshotCopying), nil, provision.ErrUnavailable},
		"the snapshot has a foreign name":                {copyOf(v1alpha1.VolumeSource{Snapshot: "theirs"}), photo(v1alpha1.SnapshotReady), nil, provision.ErrNotFound},
		"the node of the snapshot is away":               {copyOf(fromSnapshot), photo(v1alpha1.SnapshotReady), func(s *stage) { s.nodes["m"] = "is silent" }, volumes.ErrUnplaceable},
		"the mount options belong to another filesystem": {func() volumes.Request { r := copyOf(fromVolume); r.MountOptions = []string{"commit=9"}; return r }(), source(), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				if test.prepare != nil {
					test.prepare(s)
				}
				_, err := s.Create(within(t), test.request)
				if err == nil || !errors.Is(err, test.class) && test.class != nil {
					t.Errorf("got %v, want %v", err, test.class)
				}
				if v := s.volume(); v != nil {
					t.Errorf("it was made: %+v", v.Spec)
				}
			}, test.source)
		})
	}
}

// remove removes an object entirely, as another process does.
func (s *stage) remove(o client.Object) {
	s.t.Helper()
	s.must(s.Server.Live().Get(s.t.Context(), client.ObjectKeyFromObject(o), o))
	o.SetFinalizers(nil)
	s.must(s.Others().Update(s.t.Context(), o))
	s.must(s.Others().Delete(s.t.Context(), o))
}

func TestACopyThatItsNodeRefusesIsMadeNowhereElse(t *testing.T) {
	for name, meanwhile := range map[string]func(s *stage){
		"the source exists":                           func(*stage) {},
		"another client deletes the source meanwhile": func(s *stage) { s.remove(source()) },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["m"] = refuses(v1alpha1.ReasonNoSpace)
				s.first = func() { meanwhile(s) }
				_, err := s.Create(within(t), copyOf(v1alpha1.VolumeSource{Volume: sourceID}))
				expect(t, err, volumes.ErrUnplaceable)
				s.on("")
			}, source())
		})
	}
}

func TestACopyThatCouldNeverBeMountedIsNotPlacedAgain(t *testing.T) {
	from := v1alpha1.VolumeSource{Volume: sourceID}
	play(t, func(t *testing.T, s *stage) {
		r := copyOf(from)
		r.MountOptions = []string{"commit=9"} // an option of ext4, and the source has xfs
		_, err := s.Create(within(t), r)
		expect(t, err, storageclass.ErrInvalid)
		s.on("")
	}, source(), existing(func(v *v1alpha1.Volume) { v.Spec.Source, v.Spec.FSType = &from, v1alpha1.XFS }))
}
