package wish

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

func TestRemarksAreToldWhereTheyExplainSomething(t *testing.T) {
	contested := []v1alpha1.PoolClass{class("a", 2, group("vg0", "*")), class("w", 1, whole("a"))}
	for name, tc := range map[string]struct {
		classes []v1alpha1.PoolClass
		disk    provision.Pool
		outcome provision.Reason
		want    provision.Reason
		remark  bool
	}{
		"a remark says why the group gets no disk":   {[]v1alpha1.PoolClass{class("a", 1, group("vg0", "*"))}, disk("sda", used), provision.PoolAwaitsDisks, provision.PoolAwaitsDisks, true},
		"a disk matches two classes":                 {contested, disk("sda"), provision.PoolAsAsked, Contested, true},
		"a remark does not hide that the group grew": {contested, disk("sda"), provision.PoolGrown, provision.PoolGrown, false},
		"a foreign group gets no disk":               {contested, disk("sda"), provision.PoolForeign, provision.PoolForeign, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := Wishes(Facts{Classes: tc.classes, Pools: []provision.Pool{tc.disk}})[0]
			if s := w.Stand(provision.Outcome{Reason: tc.outcome, Message: "so it is"}, nil); s.Reason != tc.want || strings.Contains(s.Message, "disk:sda") != tc.remark {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestAStandingIsTheStepsOutcomeOrWhyThereIsNone(t *testing.T) {
	met := provision.Outcome{Reason: provision.PoolAsAsked, Message: "so it is"}
	for name, tc := range map[string]struct {
		listed []string
		err    error
		want   provision.Outcome
	}{
		"the step went well":  {want: met},
		"the step failed":     {err: errors.New("no answer"), want: provision.Outcome{Reason: Failing, Message: "no answer"}},
		"the wish is refused": {listed: []string{"vg0"}, want: gone("vg0")},
	} {
		t.Run(name, func(t *testing.T) {
			w := Wishes(Facts{Classes: []v1alpha1.PoolClass{class("a", 1, group("vg0", "*"))}, Pools: []provision.Pool{disk("sda")}, Listed: tc.listed})[0]
			want := Standing{Pool: "vg0", Class: "a", Outcome: tc.want}
			if diff := cmp.Diff(want, w.Stand(met, tc.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAZpoolThatWasHereIsMissedUntilItIsFound(t *testing.T) {
	classes := []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolStripe, 0))}
	w := Wishes(Facts{Classes: classes, Pools: []provision.Pool{disk("sda")}, Listed: []string{"zfs:tank"}})[0]
	if s := w.Stand(provision.Outcome{Reason: provision.PoolAwaitsDisks, Message: "none"}, nil); s.Reason != Missing || s.Met() || !strings.Contains(s.Message, "zfs:tank was here") {
		t.Errorf("it stands %+v", s)
	}
	if s := w.Stand(provision.Outcome{Reason: provision.PoolImported, Message: "imported"}, nil); !s.Met() || s.Reason != provision.PoolImported {
		t.Errorf("it stands %+v", s)
	}
}

func TestADiskThatWaitsIsToldOfAndLeavesTheZpoolAsAsked(t *testing.T) {
	classes := []v1alpha1.PoolClass{class("z", 1, zpool("tank", "*", v1alpha1.ZpoolMirror, 0))}
	w := Wishes(Facts{Classes: classes, Pools: []provision.Pool{disk("sda")}})[0]
	s := w.Stand(provision.Outcome{Reason: provision.PoolAsAsked, Message: "zpool tank is there"}, nil)
	if !s.Met() || !strings.Contains(s.Message, "zpool tank is there; disk:sda (/dev/sda) waits") {
		t.Errorf("it stands %+v", s)
	}
}
