package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/wish"
	"berth.dev/berth/internal/provision"
)

func standing(pool string, r provision.Reason, message string) wish.Standing {
	return wish.Standing{Pool: pool, Class: "fast", Outcome: provision.Outcome{Reason: r, Message: message}}
}

// found is a condition of a status in words; empty if there is none.
func found(s v1alpha1.StorageNodeStatus, kind string) string {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

func TestHowPoolsStandIsToldInOneCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		standings []wish.Standing
		want      string
	}{
		"no class manages a pool": {nil, ""},
		"all pools are as wanted": {
			[]wish.Standing{standing("vg0", provision.PoolAsAsked, "vg0 has 2 disks"), standing("vg1", provision.PoolGrown, "vg1 was grown")},
			"True AsAsked: PoolClass fast: vg0 has 2 disks; PoolClass fast: vg1 was grown",
		},
		"some pools are not as wanted": {
			[]wish.Standing{
				standing("vg0", provision.PoolAsAsked, "vg0 has 2 disks"), standing("vg1", provision.PoolForeign, "vg1 is not Berth's"),
				standing("vg2", wish.Failing, "vgcreate failed"),
			},
			"False Foreign: PoolClass fast: vg1 is not Berth's; PoolClass fast: vgcreate failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(nil)
			f.Standings = tc.standings
			if got := found(Describe(f, seen()), v1alpha1.ConditionPoolsManaged); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAThinPoolThatFillsUpIsACondition(t *testing.T) {
	thin := v1alpha1.PoolClass{
		ObjectMeta: metav1.ObjectMeta{Name: "thin"},
		Spec:       v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerLVMThin, LVMThin: &v1alpha1.LVMThinPools{ThinPools: []string{"vg0/thin"}}},
	}
	for name, tc := range map[string]struct {
		classes  []v1alpha1.PoolClass
		data     int64
		metadata int
		want     string
	}{
		"a thin pool with room":               {[]v1alpha1.PoolClass{thin}, 79 * gib / 10, 79, ""},
		"a full thin pool without a class":    {nil, 10 * gib, 100, ""},
		"a thin pool whose data fills up":     {[]v1alpha1.PoolClass{thin}, 8 * gib, 10, "True ThinPoolFilling: thin pool vg0/thin is filled to 80%, its metadata to 10%"},
		"a thin pool whose metadata fills up": {[]v1alpha1.PoolClass{thin}, gib, 85, "True ThinPoolFilling: thin pool vg0/thin is filled to 10%, its metadata to 85%"},
		"a nearly full thin pool":             {[]v1alpha1.PoolClass{thin}, 9 * gib, 10, "True ThinPoolNearlyFull"},
		"a full thin pool":                    {[]v1alpha1.PoolClass{thin}, 10 * gib, 10, "True ThinPoolNearlyFull: thin pool vg0/thin is filled to 100%"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pool("vg0/thin")
			p.Type, p.Fill = provision.LVMThin, provision.Fill{Data: tc.data, Metadata: tc.metadata}
			got := found(Describe(facts(tc.classes), seen(p)), v1alpha1.ConditionFilling)
			if !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAPoolThatBerthMadeStaysListedWhenItIsGone(t *testing.T) {
	f := facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})})
	f.Remembered = []string{"vg0"}
	got := Describe(f, seen()).Pools
	if len(got) != 1 || got[0].Name != "vg0" || got[0].Health != v1alpha1.PoolMissing || !strings.Contains(got[0].Message, "not made anew") {
		t.Errorf("listed %+v", got)
	}
	f.Expected = f.Remembered // the message of an expected pool says more
	if got := Describe(f, seen()).Pools; len(got) != 1 || !strings.Contains(got[0].Message, "volumes are in it") {
		t.Errorf("listed %+v", got)
	}
	if got := Describe(f, seen(pool("vg0"))).Pools; len(got) != 1 || got[0].Health != v1alpha1.PoolHealthy {
		t.Errorf("listed %+v", got)
	}
}

func TestOnlyPoolsOfTheEarlierReportAreRemembered(t *testing.T) {
	n := &v1alpha1.StorageNode{Status: v1alpha1.StorageNodeStatus{Pools: []v1alpha1.Pool{{Name: "vg0"}, {Name: "vg1"}}}}
	if diff := cmp.Diff([]string{"vg1"}, remembered(n, []string{"vg1", "vg2"})); diff != "" {
		t.Error(diff)
	}
	if got := remembered(nil, []string{"vg1"}); got != nil {
		t.Errorf("without a report %v is remembered", got)
	}
}

func TestTheLastChangeOfAPoolIsKeptAcrossRestarts(t *testing.T) {
	f := facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})})
	f.Standings = []wish.Standing{
		{Pool: "vg0", Class: "a", Last: provision.Outcome{Reason: provision.PoolMade, Message: "made"}, At: time.Unix(10, 0)},
		{Pool: "vg0", Class: "b", Last: provision.Outcome{Reason: provision.PoolGrown, Message: "grown"}, At: time.Unix(20, 999)},
		{Pool: "vg0", Class: "c"},
	}
	want := &v1alpha1.PoolChange{At: metav1.Unix(20, 0), Reason: v1alpha1.PoolGrown, Message: "grown"}
	first := Describe(f, seen(pool("vg0"))).Pools
	if diff := cmp.Diff(want, first[0].LastChange); diff != "" {
		t.Error(diff)
	}
	f.Standings = nil
	later := changed(first, Describe(f, seen(pool("vg0"), pool("vg1"))).Pools)
	if diff := cmp.Diff(want, later[0].LastChange); diff != "" {
		t.Error(diff)
	}
	if got := appliedChange(want); *got.Message != "grown" || *got.Reason != v1alpha1.PoolGrown || !got.At.Equal(&want.At) || appliedChange(nil) != nil {
		t.Errorf("applied %+v", got)
	}
}
