package volumes_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/volumes"
	"berth.dev/berth/internal/controller/volumetest"
	"berth.dev/berth/internal/provision"
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

func copyOf(s v1alpha1.VolumeSource, allowed ...string) volumes.Request {
	r := request(allowed...)
	r.Source, r.FSType = &s, ""
	r.Topology.Preferred = []string{"n"}
	return r
}

func TestACopyIsMadeWhereItsSourceIs(t *testing.T) {
	for name, r := range map[string]volumes.Request{
		"of a volume":   copyOf(v1alpha1.VolumeSource{Volume: sourceID}),
		"of a snapshot": copyOf(v1alpha1.VolumeSource{Snapshot: photoID}, "n", "m"),
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

func TestWhatCannotBeCopiedIsRefusedAndLeavesNothing(t *testing.T) {
	fromVolume, fromSnapshot := v1alpha1.VolumeSource{Volume: sourceID}, v1alpha1.VolumeSource{Snapshot: photoID}
	drop := func(o client.Object) func(s *stage) {
		return func(s *stage) {
			s.Hold()
			s.must(s.Server.Live().Get(s.t.Context(), client.ObjectKeyFromObject(o), o))
			o.SetFinalizers(nil)
			s.must(s.Others().Update(s.t.Context(), o))
			s.must(s.Others().Delete(s.t.Context(), o))
		}
	}
	older := func(s *stage) { s.replaceAgent("m") }
	for name, test := range map[string]struct {
		request volumes.Request
		source  client.Object
		prepare func(s *stage)
		class   error
	}{
		"its source may not be reached":    {copyOf(fromVolume, "n"), source(), nil, volumes.ErrUnplaceable},
		"its source is gone":               {copyOf(fromVolume), source(), drop(source()), provision.ErrNotFound},
		"its source goes":                  {copyOf(fromVolume), source(deleting), nil, provision.ErrNotFound},
		"its source is not ready":          {copyOf(fromVolume), source(func(v *v1alpha1.Volume) { v.Status.Replicas = nil }), nil, provision.ErrUnavailable},
		"its source is not one of Berth's": {copyOf(v1alpha1.VolumeSource{Volume: "theirs"}), source(), nil, provision.ErrNotFound},
		"its source has another mode":      {copyOf(fromVolume), source(func(v *v1alpha1.Volume) { v.Spec.VolumeMode = v1alpha1.Block }), nil, provision.ErrInvalid},
		"its source is larger than the limit": {func() volumes.Request {
			r := copyOf(fromVolume)
			r.Size = volumes.Size{Limit: 512 * volumetest.Mi}
			return r
		}(), source(), nil, volumes.ErrOutOfRange},
		"its class does not select the pool":         {copyOf(fromVolume), source(func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = "other" }), nil, provision.ErrInvalid},
		"its pool is not there any more":             {copyOf(fromVolume), source(func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = "vg9" }), nil, volumes.ErrUnplaceable},
		"its agent is older than copies by now":      {copyOf(fromVolume), source(), older, provision.ErrUnavailable},
		"its snapshot is gone":                       {copyOf(fromSnapshot), photo(v1alpha1.SnapshotReady), drop(photo(v1alpha1.SnapshotReady)), provision.ErrNotFound},
		"its snapshot is not ready":                  {copyOf(fromSnapshot), photo(v1alpha1.SnapshotCopying), nil, provision.ErrUnavailable},
		"its snapshot is not one of Berth's":         {copyOf(v1alpha1.VolumeSource{Snapshot: "theirs"}), photo(v1alpha1.SnapshotReady), nil, provision.ErrNotFound},
		"its snapshot's node is away":                {copyOf(fromSnapshot), photo(v1alpha1.SnapshotReady), func(s *stage) { s.nodes["m"] = "is silent" }, volumes.ErrUnplaceable},
		"its mount options are another filesystem's": {func() volumes.Request { r := copyOf(fromVolume); r.MountOptions = []string{"commit=9"}; return r }(), source(), nil, nil},
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

func TestAVolumeGoesWhereTheAgentMakesItAsAsked(t *testing.T) {
	older := storageNode("m")
	older.Status.Features = []string{v1alpha1.FeatureCopies}
	r := request()
	r.Topology.Preferred, r.MkfsOptions = []string{"m", "n"}, "-I 512"
	t.Run("another node, as the ledger knows", func(t *testing.T) {
		play(t, func(t *testing.T, s *stage) {
			_, err := s.Create(within(t), r)
			s.must(err)
			s.on("n")
		}, older)
	})
	t.Run("nowhere, as only the API server says yet", func(t *testing.T) {
		play(t, func(t *testing.T, s *stage) {
			s.replaceAgent("m")
			if _, err := s.Create(within(t), r); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "upgrade it") {
				t.Errorf("got %v, want that the agent has to be upgraded", err)
			}
			if v := s.volume(); v != nil {
				t.Errorf("it was made: %+v", v.Spec)
			}
		})
	})
}

func TestAVolumeGoesWhereAPodMayRunIfItCan(t *testing.T) {
	for name, test := range map[string]struct {
		shut      []string
		request   func(r *volumes.Request)
		full      string
		want      string
		preferred []string
	}{
		"none is shut":                           {want: "m"},
		"the first by name is shut":              {shut: []string{"m"}, want: "n"},
		"the one that is preferred is shut":      {shut: []string{"m"}, preferred: []string{"m", "n"}, want: "n"},
		"the open one is preferred":              {shut: []string{"n"}, preferred: []string{"m", "n"}, want: "m"},
		"all are shut":                           {shut: []string{"m", "n"}, preferred: []string{"n", "m"}, want: "n"},
		"a scheduler has chosen the one that is": {shut: []string{"n"}, request: func(r *volumes.Request) { r.Topology.Allowed = []string{"n"} }, want: "n"},
		"the open one has refused":               {shut: []string{"m"}, full: "n", want: "m"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				for _, node := range test.shut {
					s.shut[node] = true
				}
				if test.full != "" {
					s.agents[test.full] = refuses(v1alpha1.ReasonNoSpace)
				}
				r := request()
				r.Topology.Preferred = test.preferred
				if test.request != nil {
					test.request(&r)
				}
				_, err := s.Create(within(t), r)
				expect(t, err, nil)
				s.on(test.want)
			})
		})
	}
}

func TestARequestThatNoNodeMeetsSaysWhy(t *testing.T) {
	for told, test := range map[string]struct {
		change func(r *volumes.Request, s *stage)
		class  error
	}{
		`PoolClass "none" does not exist`: {func(r *volumes.Request, _ *stage) { r.PoolClass = "none" }, provision.ErrInvalid},
		`PoolClass "late" is not taken in`: {func(r *volumes.Request, s *stage) {
			s.Hold()
			late := poolClass()
			late.Name = "late"
			s.must(s.Others().Create(s.t.Context(), late))
			r.PoolClass = "late"
		}, provision.ErrUnavailable},
		"node m: ":                         {func(r *volumes.Request, _ *stage) { r.Size.Required = 100 * gi }, volumes.ErrUnplaceable},
		"node n: is silent":                {func(_ *volumes.Request, s *stage) { s.nodes["n"], s.nodes["m"] = "is silent", "is silent" }, volumes.ErrUnplaceable},
		"over the limit of":                {func(r *volumes.Request, _ *stage) { r.Size = volumes.Size{Required: gi + 1, Limit: gi + 2} }, volumes.ErrOutOfRange},
		"node far: has no pool":            {func(r *volumes.Request, _ *stage) { r.Topology.Allowed = []string{"far"} }, volumes.ErrUnplaceable},
		"no node that may hold the volume": {func(r *volumes.Request, _ *stage) { r.Topology.Allowed = []string{"far", "off"} }, volumes.ErrUnplaceable},
	} {
		t.Run(told, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				r := request()
				test.change(&r, s)
				_, err := s.Create(within(t), r)
				expect(t, err, test.class)
				if err != nil && !strings.Contains(err.Error(), told) {
					t.Errorf("told %q, want %q", err, told)
				}
				s.wroteOnly()
			})
		})
	}
}

func TestVolumesAreReadFromTheAPIServerAndListedFromTheCache(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		list, next, err := s.List(within(t), "", 0)
		if err != nil || next != "" || len(list) != 1 || list[0].ID != id {
			t.Errorf("%+v, %q, %v", list, next, err)
		}
		if _, _, err := s.List(within(t), "strange", 0); !errors.Is(err, volumes.ErrBadToken) {
			t.Errorf("got %v", err)
		}
		s.Hold()
		if got, err := s.Get(within(t), id); err != nil || !slices.Equal(got.Nodes, []string{"n"}) {
			t.Errorf("%+v, %v", got, err)
		}
		s.drop()
		_, err = s.Get(within(t), id)
		expect(t, err, provision.ErrNotFound)
	}, existing(wanted("n"), carved("n")), source(deleting), unmade())
}

// unmade is a volume that no node has answered for.
func unmade() *v1alpha1.Volume {
	v := existing(wanted("n"))
	v.Name, v.UID, v.Spec.ClaimRef = "pvc-00000000-0000-0000-0000-000000000004", "unmade", nil
	return v
}

func TestTheRoomForNewVolumesIsThatOfNodesThatAnswer(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		for name, test := range map[string]struct {
			class          string
			allowed        []string
			total, largest int64
		}{
			"of a class":            {"fast", nil, 20 * gi, 10 * gi},
			"of any":                {"", nil, 20 * gi, 10 * gi},
			"of a node":             {"fast", []string{"n"}, 10 * gi, 10 * gi},
			"of a node that is far": {"fast", []string{"far"}, 0, 0},
		} {
			got, err := s.Capacity(within(t), test.class, test.allowed)
			if err != nil || got.Total != test.total || got.Largest != test.largest {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
		_, err := s.Capacity(within(t), "none", nil)
		expect(t, err, provision.ErrInvalid)
		s.nodes["n"] = "is silent"
		if got, err := s.Capacity(within(t), "fast", nil); err != nil || got.Total != 10*gi {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestAVolumeWithoutAClaimGetsANameOfItsOwn(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		r := request("n")
		r.Name, r.Claim = "by-hand", nil
		v := &v1alpha1.Volume{}
		later(func() {
			s.must(s.Server.Live().Get(t.Context(), client.ObjectKey{Name: v1alpha1.VolumeName("by-hand")}, v))
			v.Status.Replicas = []v1alpha1.ReplicaStatus{carves(v)}
			s.must(s.Others().Status().Update(t.Context(), v))
		})
		got, err := s.Create(within(t), r)
		if err != nil || got.ID != v1alpha1.VolumeName("by-hand") || v.Spec.ClaimRef != nil {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
