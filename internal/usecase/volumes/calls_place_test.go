package volumes_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
)

func TestAVolumeGoesWhereTheAgentMakesItAsAsked(t *testing.T) {
	older := storageNode("m")
	older.Status.Features = []string{v1alpha1.FeatureCopies}
	r := request()
	r.Topology.Preferred, r.MkfsOptions = []string{"m", "n"}, "-I 512"
	t.Run("the ledger knows that an agent is too old, and another node gets the volume", func(t *testing.T) {
		play(t, func(t *testing.T, s *stage) {
			_, err := s.Create(within(t), r)
			s.must(err)
			s.on("n")
		}, older)
	})
	t.Run("only the API server knows that an agent is too old, and no node gets the volume", func(t *testing.T) {
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
		"no node is shut":                      {want: "m"},
		"the first node by name is shut":       {shut: []string{"m"}, want: "n"},
		"the preferred node is shut":           {shut: []string{"m"}, preferred: []string{"m", "n"}, want: "n"},
		"the preferred node is open":           {shut: []string{"n"}, preferred: []string{"m", "n"}, want: "m"},
		"all nodes are shut":                   {shut: []string{"m", "n"}, preferred: []string{"n", "m"}, want: "n"},
		"a scheduler has chosen the shut node": {shut: []string{"n"}, request: func(r *volumes.Request) { r.Topology.Allowed = []string{"n"} }, want: "n"},
		"the open node has refused":            {shut: []string{"m"}, full: "n", want: "m"},
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
		"node m: ":           {func(r *volumes.Request, _ *stage) { r.Size.Required = 100 * gi }, volumes.ErrUnplaceable},
		"node n: is silent":  {func(_ *volumes.Request, s *stage) { s.nodes["n"], s.nodes["m"] = "is silent", "is silent" }, volumes.ErrUnplaceable},
		"over the limit of":  {func(r *volumes.Request, _ *stage) { r.Size = volumes.Size{Required: gi + 1, Limit: gi + 2} }, volumes.ErrOutOfRange},
		"cannot be negative": {func(r *volumes.Request, _ *stage) { r.Size.Required = -1 }, provision.ErrInvalid},
		"which is on node m, and can be nowhere else": {func(r *volumes.Request, s *stage) {
			there := source()
			there.ResourceVersion = ""
			s.must(s.Others().Create(s.t.Context(), there))
			*r = copyOf(v1alpha1.VolumeSource{Volume: sourceID}, "n")
		}, volumes.ErrUnplaceable},
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
			"the room of a class":         {"fast", nil, 20 * gi, 10 * gi},
			"the room of all classes":     {"", nil, 20 * gi, 10 * gi},
			"the room of a node":          {"fast", []string{"n"}, 10 * gi, 10 * gi},
			"the room of an unknown node": {"fast", []string{"far"}, 0, 0},
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

func TestAVolumeThatIsNotNamedAfterAClaimGetsANameOfItsOwn(t *testing.T) {
	for name, claim := range map[string]*v1alpha1.ClaimReference{
		"a volume without a claim":                          nil,
		"a volume with a claim":                             {Namespace: "shop", Name: "data", UID: "theirs"},
		"a volume with a claim that is known by name alone": {Namespace: "shop", Name: "data"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				r := request("n")
				r.Name, r.Claim, s.name = "by-hand", claim, v1alpha1.VolumeName("by-hand")
				got, err := s.Create(within(t), r)
				if err != nil || got.ID != s.name {
					t.Errorf("%+v, %v", got, err)
				}
				if diff := cmp.Diff(claim, s.volume().Spec.ClaimRef); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
