package orphans

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
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

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		node      *v1alpha1.StorageNode
		retention time.Duration
		now       int64          // said, if 0
		known     *time.Duration // long enough, if nil
		want      Verdict        // its message is not compared
	}{
		"no administrator named the orphan":                                    {node: node(), now: 1 << 40, want: Verdict{Reason: ReasonKept}},
		"the node has reported nothing":                                        {node: &v1alpha1.StorageNode{}, want: Verdict{Reason: ReasonKept}},
		"an administrator named the orphan":                                    {node: node(named()), want: Verdict{Delete: true, Reason: ReasonForgotten}},
		"an administrator named two orphans":                                   {node: node(named(func(f *v1alpha1.ForgottenOrphan) { f.Name = "pvc-2" }), named()), want: Verdict{Delete: true, Reason: ReasonForgotten}},
		"an administrator named another orphan":                                {node: node(named(func(f *v1alpha1.ForgottenOrphan) { f.Name = "pvc-2" })), want: Verdict{Reason: ReasonKept}},
		"an administrator named the orphan in another pool":                    {node: node(named(func(f *v1alpha1.ForgottenOrphan) { f.Pool = "vg1" })), want: Verdict{Reason: ReasonKept}},
		"an administrator named an orphan of another time":                     {node: node(named(func(f *v1alpha1.ForgottenOrphan) { f.Since = metav1.Unix(999, 0) })), want: Verdict{Reason: ReasonChanged}},
		"an administrator named an orphan of another size":                     {node: node(named(func(f *v1alpha1.ForgottenOrphan) { f.Size = resource.MustParse("2Gi") })), want: Verdict{Reason: ReasonChanged}},
		"the report shows another size":                                        {node: node(named(), func(n *v1alpha1.StorageNode) { reported(n).Size = resource.MustParse("2Gi") }), want: Verdict{Reason: ReasonChanged}},
		"the report does not show the named data":                              {node: node(named(), func(n *v1alpha1.StorageNode) { n.Status.Pools = nil }), want: Verdict{Reason: ReasonKept}},
		"the report does not call the named data an orphan":                    {node: node(named(), func(n *v1alpha1.StorageNode) { n.Status.Pools[0].Inventory[0].Orphan = nil }), want: Verdict{Reason: ReasonKept}},
		"the report shows the orphan in another pool":                          {node: node(named(), func(n *v1alpha1.StorageNode) { n.Status.Pools[0].Name = "vg1" }), want: Verdict{Reason: ReasonKept}},
		"an administrator named the orphan a day ago":                          {node: node(named()), now: said + 86400, want: Verdict{Delete: true, Reason: ReasonForgotten}},
		"an administrator named the orphan more than a day ago":                {node: node(named()), now: said + 86401, want: Verdict{Reason: ReasonStale}},
		"a clock far ahead stamped the order":                                  {node: node(named()), now: said - 86401, want: Verdict{Reason: ReasonStale}},
		"the order is too old, and the deadline has passed":                    {node: node(named(), due(4600)), retention: time.Hour, now: said + 86401, want: Verdict{Delete: true, Reason: ReasonExpired}},
		"the deadline passed before this process saw the orphan":               {node: node(due(4600)), retention: time.Hour, now: 1 << 40, known: new(time.Duration(0)), want: Verdict{Reason: ReasonKept, Again: time.Hour}},
		"the deadline passed, and this process has known the orphan for hours": {node: node(due(864000)), retention: 240 * time.Hour, now: 1 << 40, known: new(20 * time.Hour), want: Verdict{Reason: ReasonKept, Again: 4 * time.Hour}},
		"the deadline has not passed yet":                                      {node: node(due(4600)), retention: time.Hour, now: 4599, want: Verdict{Reason: ReasonKept, Again: time.Second}},
		"the deadline has passed":                                              {node: node(due(4600)), retention: time.Hour, now: 4600, want: Verdict{Delete: true, Reason: ReasonExpired}},
		"the retention was removed":                                            {node: node(due(4600)), now: 9999, want: Verdict{Reason: ReasonKept}},
		"the retention was prolonged":                                          {node: node(due(4600)), retention: 2 * time.Hour, now: 8199, want: Verdict{Reason: ReasonKept, Again: time.Second}},
		"the retention was shortened":                                          {node: node(due(4600)), retention: time.Minute, now: 4599, want: Verdict{Reason: ReasonKept, Again: time.Second}},
		"the report shows no deadline":                                         {node: node(), retention: time.Hour, now: 1 << 40, want: Verdict{Reason: ReasonKept, Again: unreported}},
		"the report does not show the orphan yet":                              {node: &v1alpha1.StorageNode{}, retention: time.Hour, now: 1 << 40, want: Verdict{Reason: ReasonKept, Again: unreported}},
		"the reported deadline belongs to data of another size":                {node: node(due(4600), func(n *v1alpha1.StorageNode) { reported(n).Size = resource.MustParse("2Gi") }), retention: time.Hour, now: 9999, want: Verdict{Reason: ReasonKept, Again: unreported}},
		"an object of the same name wants no data on this node":                {node: node(due(4600), func(n *v1alpha1.StorageNode) { reported(n).Reason = v1alpha1.OrphanNotPlaced }), retention: time.Hour, now: 9999, want: Verdict{Reason: ReasonKept}},
	} {
		t.Run(name, func(t *testing.T) {
			r := record
			if tc.known != nil {
				r.Known = *tc.known
			}
			got := Judge(tc.node, r, tc.retention, time.Unix(cmp.Or(tc.now, said), 0))
			if got.Message == "" {
				t.Error("nothing is said")
			}
			if got.Message = ""; got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

// says returns a reader that has a StorageNode, or an error.
func says(t *testing.T, n *v1alpha1.StorageNode, err error) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	if n != nil {
		b = b.WithObjects(n)
	}
	return interceptor.NewClient(b.Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

func TestTheAPIServerHasTheLastWord(t *testing.T) {
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		watched, live *v1alpha1.StorageNode
		away          error
		goes          bool
	}{
		"the watch and the API server name the orphan":                       {watched: node(named()), live: node(named()), goes: true},
		"the API server does not name the orphan any more":                   {watched: node(named()), live: node()},
		"the StorageNode is gone":                                            {watched: node(named())},
		"only the API server names the orphan":                               {watched: node(), live: node(named())},
		"neither the watch nor the API server has a StorageNode":             {},
		"the API server is away":                                             {watched: node(named()), away: away},
		"the watch does not name the orphan, so the API server is not asked": {watched: node(), away: away},
	} {
		t.Run(name, func(t *testing.T) {
			w := Word{Node: "n1", Watched: says(t, tc.watched, nil), Live: says(t, tc.live, tc.away), Clock: testingclock.NewFakePassiveClock(time.Unix(2000, 0))}
			got, err := w.On(t.Context(), record)
			asked := tc.away != nil && tc.watched.Spec.Forget != nil
			if got.Delete != tc.goes || asked != errors.Is(err, away) || asked != (err != nil) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
