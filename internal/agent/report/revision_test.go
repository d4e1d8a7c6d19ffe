package report

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
)

func at(revision string, v v1alpha1.Volume) *v1alpha1.Volume {
	v.ResourceVersion = revision
	return &v
}

func TestEveryDeletionIsOwedAReport(t *testing.T) {
	for name, tc := range map[string]struct {
		deleted []any
		want    string
	}{
		"no volume was deleted":              {},
		"a volume with data":                 {[]any{at("7", onNode("pvc-1", "vg0", saying("n1", "vg0", v1alpha1.ReplicaReady)))}, "7"},
		"a volume that no node has reported": {[]any{at("7", onNode("pvc-1", "vg0"))}, "7"},
		"a volume that was reported gone":    {[]any{at("7", onNode("pvc-1", "", saying("n1", "vg0", v1alpha1.ReplicaGone)))}, "7"},
		"a volume that another node reported gone": {
			[]any{at("7", onNode("pvc-1", "vg0", saying("n2", "vg0", v1alpha1.ReplicaGone)))}, "7"},
		"two volumes, and the later deletion came first": {[]any{at("10", onNode("pvc-1", "vg0")), at("9", onNode("pvc-2", "vg0"))}, "10"},
		"a deletion that the watch missed":               {[]any{cache.DeletedFinalStateUnknown{Key: "pvc-1"}}, "42"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRevisions("n1", func() string { return "42" })
			for _, o := range tc.deleted {
				r.Deleted(o)
			}
			if got := r.Owed(); got != tc.want {
				t.Errorf("revision %q is owed, want %q", got, tc.want)
			}
		})
	}
}

// come moves the watch on to a revision, and sets the revision that is owed.
func come(revision, owed string) func(*cluster) {
	return func(c *cluster) { c.facts.Revision, c.facts.Owed = revision, owed }
}

func TestARevisionAloneIsNotWrittenUnlessItIsOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, come("5", ""))
		for _, step := range []struct {
			what   string
			change func(*cluster)
			writes int
			says   string
		}{
			{"the first report", func(*cluster) {}, 1, "5"},
			{"a volume that changed", come("6", ""), 1, "5"},
			{"figures that changed", func(c *cluster) { come("7", "")(c); c.pool.Free = gib }, 2, "7"},
			{"a deletion that was seen already", come("7", "6"), 2, "7"},
			{"a deletion", come("9", "8"), 3, "9"},
			{"more changes after the deletion", come("11", "8"), 3, "9"},
		} {
			c.use(step.change)
			p.Poke()
			pass(interval)
			if n := c.count("node"); n != step.writes || c.node.Status.VolumesRevision != step.says {
				t.Errorf("%s: %d writes, the last of revision %q; want %d and %q", step.what, n, c.node.Status.VolumesRevision, step.writes, step.says)
			}
		}
	})
}

func TestManyDeletionsShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, come("5", ""))
		pass(interval)
		for _, revision := range []string{"6", "7", "8", "9"} {
			c.use(come(revision, revision))
			p.Poke()
			pass(10 * time.Millisecond)
		}
		pass(interval)
		if n := c.count("node"); n != 3 || c.node.Status.VolumesRevision != "9" {
			t.Errorf("%d writes, the last of revision %q; want the first report, the first deletion and the rest", n, c.node.Status.VolumesRevision)
		}
	})
}

func TestAWatchThatDoesNotSayHowFarItIsOwesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, come("", "8"))
		p.Poke()
		pass(interval)
		if n := c.count("node"); n != 1 {
			t.Errorf("%d writes; want 1", n)
		}
	})
}
