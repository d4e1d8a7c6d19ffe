package report

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/provision"
)

// orphaning makes volumes and snapshots orphans because they have no object.
func orphaning(names ...string) func(*cluster) {
	return func(c *cluster) {
		c.facts.Orphans = map[string]orphans.Orphan{}
		for _, name := range names {
			c.facts.Orphans[name] = orphans.Orphan{Reason: v1alpha1.OrphanNoObject, Message: name + " has no object"}
		}
	}
}

// orphansOf returns the orphans of a report, by name.
func orphansOf(n *v1alpha1.StorageNode) map[string]v1alpha1.Orphan {
	found := map[string]v1alpha1.Orphan{}
	each(n.Status.Pools, func(at place, o *v1alpha1.Orphan) { found[at.volume+at.snapshot] = *o })
	return found
}

func TestAnOrphanIsReportedWithTheFactsThatItsAdoptionNeeds(t *testing.T) {
	f := facts(nil)
	f.Orphans = map[string]orphans.Orphan{
		"pvc-1": {Reason: v1alpha1.OrphanNoObject, Message: "no object"}, "snap-1": {Reason: v1alpha1.OrphanNotPlaced, Message: "an old one"},
	}
	p := pool("vg0", holding("pvc-1", "pvc-2"), keeping("snap-1", "snap-2"))
	p.Volumes[0].Filesystem, p.Volumes[0].Source = provision.XFS, provision.Source{Volume: "pvc-0"}
	p.Snapshots[0].Filesystem = provision.Raw // raw data is adopted as a block device
	got := orphansOf(&v1alpha1.StorageNode{Status: Describe(f, seen(p))})
	want := map[string]v1alpha1.Orphan{
		"pvc-1":  {Reason: v1alpha1.OrphanNoObject, Message: "no object", Size: quantity(gib), Filesystem: "xfs", Source: "pvc-0"},
		"snap-1": {Reason: v1alpha1.OrphanNotPlaced, Message: "an old one", Size: quantity(2 * gib), Source: "pvc-1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOverlongRecordsBesideTheDataDoNotMakeTheReportInvalid(t *testing.T) {
	f := facts(nil)
	f.Orphans = map[string]orphans.Orphan{"pvc-1": {Reason: v1alpha1.OrphanNoObject}}
	p := pool("vg0", holding("pvc-1"))
	long := string(make([]byte, 1000))
	p.Volumes[0].Filesystem, p.Volumes[0].Source.Volume = long, long
	o := orphansOf(&v1alpha1.StorageNode{Status: Describe(f, seen(p))})["pvc-1"]
	if len(o.Filesystem) > 32 || len(o.Source) > 63 {
		t.Errorf("a filesystem of %d and a source of %d bytes", len(o.Filesystem), len(o.Source))
	}
}

func TestAnOrphanIsOneSinceItWasFirstReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := publishing(t, func(c *cluster) { holding("pvc-1", "pvc-2")(&c.pool); orphaning("pvc-1")(c) })
		first := time.Now()
		pass(time.Hour)
		c.use(orphaning("pvc-1", "pvc-2"))
		p.Poke()
		pass(interval)
		got := orphansOf(c.node)
		if since := got["pvc-1"].Since.Time; !since.Equal(first) {
			t.Errorf("since %s, want %s", since, first)
		}
		if since := got["pvc-2"].Since.Time; since.Before(first.Add(time.Hour)) {
			t.Errorf("the later one since %s, first report at %s", since, first)
		}
		if got["pvc-1"].Deadline != nil {
			t.Errorf("deadline %s, although orphans are kept for ever", got["pvc-1"].Deadline)
		}
	})
}

func TestDated(t *testing.T) {
	start, now := time.Unix(1000, 0), time.Unix(5000, 999)
	reported := func(reason v1alpha1.OrphanReason, since time.Time, names ...string) []v1alpha1.Pool {
		f := facts(nil)
		f.Orphans = map[string]orphans.Orphan{}
		for _, name := range names {
			f.Orphans[name] = orphans.Orphan{Reason: reason}
		}
		pools := Describe(f, seen(pool("vg0", holding(names...)))).Pools
		return dated(nil, pools, 0, since)
	}
	for name, tc := range map[string]struct {
		before    []v1alpha1.Pool
		reason    v1alpha1.OrphanReason
		retention time.Duration
		since     time.Time
		deadline  time.Time // zero: none
	}{
		"a new orphan":                         {reason: v1alpha1.OrphanNoObject, since: time.Unix(5000, 0)},
		"a new orphan gets a deadline":         {reason: v1alpha1.OrphanNoObject, retention: time.Hour, since: time.Unix(5000, 0), deadline: time.Unix(8600, 0)},
		"a known orphan":                       {before: reported(v1alpha1.OrphanNoObject, start, "pvc-1"), reason: v1alpha1.OrphanNoObject, since: start},
		"a known orphan gets a deadline":       {before: reported(v1alpha1.OrphanNoObject, start, "pvc-1"), reason: v1alpha1.OrphanNoObject, retention: time.Hour, since: start, deadline: time.Unix(4600, 0)},
		"another orphan was known":             {before: reported(v1alpha1.OrphanNoObject, start, "pvc-2"), reason: v1alpha1.OrphanNoObject, since: time.Unix(5000, 0)},
		"data with an object gets no deadline": {reason: v1alpha1.OrphanNotPlaced, retention: time.Hour, since: time.Unix(5000, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			next := dated(tc.before, reported(tc.reason, now, "pvc-1"), tc.retention, now)
			o := next[0].Inventory[0].Orphan
			deadline := time.Time{}
			if o.Deadline != nil {
				deadline = o.Deadline.Time
			}
			if !o.Since.Time.Equal(tc.since) || !deadline.Equal(tc.deadline) {
				t.Errorf("since %s, deadline %s; want %s and %s", o.Since, deadline, tc.since, tc.deadline)
			}
		})
	}
}
