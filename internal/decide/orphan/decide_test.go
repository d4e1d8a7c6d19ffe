package orphan

import (
	"cmp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
)

const gib = int64(1 << 30)

// said is the time of the entry that says that pvc-1 is to be forgotten.
const said = 2000

var (
	since  = time.Unix(1000, 0)
	record = Record{Name: "pvc-1", Pool: "vg0", Size: gib, Known: grace}
)

// node is a StorageNode that reports pvc-1 in vg0 as an orphan since 1000.
func node(changes ...func(*v1alpha1.StorageNode)) *v1alpha1.StorageNode {
	n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	o := &v1alpha1.Orphan{Since: metav1.NewTime(since), Reason: v1alpha1.OrphanNoObject, Size: resource.MustParse("1Gi")}
	n.Status.Pools = []v1alpha1.Pool{{Name: "vg0", Inventory: []v1alpha1.InventoryItem{{Volume: "pvc-1", Orphan: o}}}}
	for _, c := range changes {
		c(n)
	}
	return n
}

func reported(n *v1alpha1.StorageNode) *v1alpha1.Orphan { return n.Status.Pools[0].Inventory[0].Orphan }

func named(changes ...func(*v1alpha1.ForgottenOrphan)) func(*v1alpha1.StorageNode) {
	return func(n *v1alpha1.StorageNode) {
		f := v1alpha1.ForgottenOrphan{Pool: "vg0", Name: "pvc-1", Size: resource.MustParse("1Gi"), Since: metav1.NewTime(since), At: metav1.Unix(said, 0)}
		for _, c := range changes {
			c(&f)
		}
		n.Spec.Forget = append(n.Spec.Forget, f)
	}
}

func due(at int64) func(*v1alpha1.StorageNode) {
	return func(n *v1alpha1.StorageNode) { reported(n).Deadline = &metav1.Time{Time: time.Unix(at, 0)} }
}

// because returns an answer with a reason, of which the verb follows.
func because(reason string) Answer {
	verb := decide.Keep
	if reason == ReasonForgotten || reason == ReasonExpired {
		verb = decide.Remove
	}
	return Answer{Decision: decide.Decision{Verb: verb, Reason: reason}}
}

func later(reason string, again time.Duration) Answer {
	a := because(reason)
	a.Again = again
	return a
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		node      *v1alpha1.StorageNode
		retention time.Duration
		now       int64          // said, if 0
		known     *time.Duration // long enough, if nil
		want      Answer         // its message is not compared
	}{
		"no administrator named the orphan":                                       {node: node(), now: 1 << 40, want: because(ReasonKept)},
		"the node has reported nothing":                                           {node: &v1alpha1.StorageNode{}, want: because(ReasonKept)},
		"an administrator named the orphan":                                       {node: node(named()), want: because(ReasonForgotten)},
		"an administrator named two orphans":                                      {node: node(named(func(f *v1alpha1.ForgottenOrphan) { f.Name = "pvc-2" }), named()), want: because(ReasonForgotten)},
		"an administrator named another orphan":                                   {node: node(named(func(f *v1alpha1.ForgottenOrphan) { f.Name = "pvc-2" })), want: because(ReasonKept)},
		"an administrator named the orphan in another pool":                       {node: node(named(func(f *v1alpha1.ForgottenOrphan) { f.Pool = "vg1" })), want: because(ReasonKept)},
		"an administrator named an orphan of another time":                        {node: node(named(func(f *v1alpha1.ForgottenOrphan) { f.Since = metav1.Unix(999, 0) })), want: because(ReasonChanged)},
		"an administrator named an orphan of another size":                        {node: node(named(func(f *v1alpha1.ForgottenOrphan) { f.Size = resource.MustParse("2Gi") })), want: because(ReasonChanged)},
		"the report shows another size":                                           {node: node(named(), func(n *v1alpha1.StorageNode) { reported(n).Size = resource.MustParse("2Gi") }), want: because(ReasonChanged)},
		"the report does not show the named data":                                 {node: node(named(), func(n *v1alpha1.StorageNode) { n.Status.Pools = nil }), want: because(ReasonKept)},
		"the report does not call the named data an orphan":                       {node: node(named(), func(n *v1alpha1.StorageNode) { n.Status.Pools[0].Inventory[0].Orphan = nil }), want: because(ReasonKept)},
		"the report shows the orphan in another pool":                             {node: node(named(), func(n *v1alpha1.StorageNode) { n.Status.Pools[0].Name = "vg1" }), want: because(ReasonKept)},
		"an administrator named the orphan a day ago":                             {node: node(named()), now: said + 86400, want: because(ReasonForgotten)},
		"an administrator named the orphan more than a day ago":                   {node: node(named()), now: said + 86401, want: because(ReasonStale)},
		"a clock far ahead stamped the order":                                     {node: node(named()), now: said - 86401, want: because(ReasonStale)},
		"the order is too old, and the deadline has passed":                       {node: node(named(), due(4600)), retention: time.Hour, now: said + 86401, want: because(ReasonExpired)},
		"the deadline passed before this process saw the orphan":                  {node: node(due(4600)), retention: time.Hour, now: 1 << 40, known: new(time.Duration(0)), want: later(ReasonKept, time.Hour)},
		"the deadline passed, and this process has known the orphan for hours":    {node: node(due(864000)), retention: 240 * time.Hour, now: 1 << 40, known: new(20 * time.Hour), want: later(ReasonKept, 4*time.Hour)},
		"the deadline has not passed yet":                                         {node: node(due(4600)), retention: time.Hour, now: 4599, want: later(ReasonKept, time.Second)},
		"the deadline has passed":                                                 {node: node(due(4600)), retention: time.Hour, now: 4600, want: because(ReasonExpired)},
		"the retention was removed":                                               {node: node(due(4600)), now: 9999, want: because(ReasonKept)},
		"the retention was prolonged":                                             {node: node(due(4600)), retention: 2 * time.Hour, now: 8199, want: later(ReasonKept, time.Second)},
		"the retention was shortened":                                             {node: node(due(4600)), retention: time.Minute, now: 4599, want: later(ReasonKept, time.Second)},
		"the report shows no deadline":                                            {node: node(), retention: time.Hour, now: 1 << 40, want: later(ReasonKept, unreported)},
		"the report does not show the orphan yet":                                 {node: &v1alpha1.StorageNode{}, retention: time.Hour, now: 1 << 40, want: later(ReasonKept, unreported)},
		"the reported deadline belongs to data of another size":                   {node: node(due(4600), func(n *v1alpha1.StorageNode) { reported(n).Size = resource.MustParse("2Gi") }), retention: time.Hour, now: 9999, want: later(ReasonKept, unreported)},
		"an object of the same name wants no data here, and there is no deadline": {node: node(func(n *v1alpha1.StorageNode) { reported(n).Reason = v1alpha1.OrphanNotPlaced }), retention: time.Hour, now: 9999, want: because(ReasonKept)},
		"an object of the same name wants no data on this node":                   {node: node(due(4600), func(n *v1alpha1.StorageNode) { reported(n).Reason = v1alpha1.OrphanNotPlaced }), retention: time.Hour, now: 9999, want: because(ReasonKept)},
	} {
		t.Run(name, func(t *testing.T) {
			r := record
			if tc.known != nil {
				r.Known = *tc.known
			}
			got := Decide(tc.node, r, tc.retention, time.Unix(cmp.Or(tc.now, said), 0))
			if got.Message == "" {
				t.Error("nothing is said")
			}
			if got.Message = ""; got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestADeletionDoesNotWaitForLostDataThatWasNamedAfterItBegan(t *testing.T) {
	for name, tc := range map[string]struct {
		word func(*v1alpha1.ForgottenOrphan)
		now  int64
		want bool
	}{
		"an administrator named the orphan":                      {word: func(*v1alpha1.ForgottenOrphan) {}, now: said, want: true},
		"an administrator named the orphan a day ago":            {word: func(*v1alpha1.ForgottenOrphan) {}, now: said + 86400, want: true},
		"an administrator named the orphan more than a day ago":  {word: func(*v1alpha1.ForgottenOrphan) {}, now: said + 86401},
		"a clock far ahead stamped the order":                    {word: func(*v1alpha1.ForgottenOrphan) {}, now: said - 86401},
		"an administrator named another orphan":                  {word: func(f *v1alpha1.ForgottenOrphan) { f.Name = "pvc-2" }, now: said},
		"an administrator named the orphan in another pool":      {word: func(f *v1alpha1.ForgottenOrphan) { f.Pool = "vg1" }, now: said},
		"an administrator named the data in an earlier deletion": {word: func(f *v1alpha1.ForgottenOrphan) { f.Since = metav1.Unix(999, 0) }, now: said},
	} {
		t.Run(name, func(t *testing.T) {
			l := Lost{Name: "pvc-1", Pool: "vg0", Deleted: metav1.NewTime(since)}
			if got := Waived(node(named(tc.word)), l, time.Unix(tc.now, 0)); got != tc.want {
				t.Errorf("waived: %v", got)
			}
		})
	}
}

func TestASnapshotBesideOthersIsFoundInTheReport(t *testing.T) {
	n := node(named(func(f *v1alpha1.ForgottenOrphan) { f.Name = "snap-1" }))
	items := n.Status.Pools[0].Inventory
	n.Status.Pools[0].Inventory = []v1alpha1.InventoryItem{{Volume: "pvc-2"}, {Snapshot: "snap-1", Orphan: items[0].Orphan}}
	r := record
	r.Name = "snap-1"
	if got := Decide(n, r, 0, time.Unix(said, 0)); got.Verb != decide.Remove {
		t.Errorf("%+v", got)
	}
}
