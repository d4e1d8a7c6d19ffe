package quarantine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

// recorded is data whose record names a claim.
func recorded(name, claim string) v1alpha1.InventoryItem {
	return orphaned(name, func(o *v1alpha1.Orphan) { o.Claim = claim })
}

func onNode(n *v1alpha1.StorageNode, name string) *v1alpha1.StorageNode {
	n.Name = name
	return n
}

// planned gathers a cluster of objects, and returns its plan in short: action, name, claim and reason.
func planned(t *testing.T, node, class string, objects ...client.Object) []string {
	t.Helper()
	facts, err := Gather(t.Context(), cluster(t, interceptor.Funcs{}, objects...), node, class)
	if err != nil {
		t.Fatal(err)
	}
	return short(Plan(facts))
}

func short(steps []Step) (out []string) {
	for _, s := range steps {
		out = append(out, strings.Join([]string{string(s.Action), s.Node, s.Name, s.Claim, s.Reason}, "|"))
	}
	return out
}

func TestAPlanAdoptsWhatIsClearAndRefusesTheRest(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		node    string
		class   string
		want    []string
	}{
		"nothing is lost":                           {objects: []client.Object{node()}},
		"the record names a claim that is gone":     {objects: []client.Object{node(recorded(lost, "shop/db"))}, want: []string{"Adopt|n1|" + lost + "|shop/db|"}},
		"the record names a claim that waits":       {objects: []client.Object{node(recorded(lost, "shop/db")), claimed("another", "")}, want: []string{"Adopt|n1|" + lost + "|shop/db|"}},
		"the claim has the uid in the name":         {objects: []client.Object{node(recorded(lost, "bank/old")), claimed(first, "")}, want: []string{"Adopt|n1|" + lost + "|shop/db|"}},
		"a PersistentVolume names the claim":        {objects: []client.Object{node(recorded(lost, "bank/old")), exported(lost)}, want: []string{"Adopt|n1|" + lost + "|shop/db|"}},
		"the objects were made a moment ago":        {objects: []client.Object{node(recorded(lost, "shop/db")), volume(lost, "n1"), exported(lost)}, want: []string{"None|n1|" + lost + "|shop/db|its objects are there"}},
		"only the PersistentVolume is left to make": {objects: []client.Object{node(recorded(lost, "shop/db")), volume(lost, "n1")}, want: []string{"Adopt|n1|" + lost + "|shop/db|"}},
		"only one node is asked for": {objects: []client.Object{node(recorded(lost, "shop/db")), onNode(node(recorded(other, "shop/web")), "n2")}, node: "n2",
			want: []string{"Adopt|n2|" + other + "|shop/web|"}},
		"volumes come before snapshots": {objects: []client.Object{node(orphaned(photo, from(lost)), recorded(lost, "shop/db"))},
			want: []string{"Adopt|n1|" + lost + "|shop/db|", "Adopt|n1|" + photo + "||"}},
		"a Snapshot was made a moment ago": {objects: []client.Object{node(orphaned(photo, from(lost))), photoOf("n1")}, want: []string{"None|n1|" + photo + "||its object is there"}},
		"a Snapshot of that name is elsewhere": {objects: []client.Object{node(orphaned(photo, from(lost))), photoOf("n2")},
			want: []string{"Refuse|n1|" + photo + "||refused: Snapshot " + photo + " exists and is on n2: what node n1 has may be older, and is left alone"}},
		"the record names no claim": {objects: []client.Object{node(orphaned(lost))},
			want: []string{"Refuse|n1|" + lost + "||the record beside the data names no claim: kubectl berth adopt n1 " + lost + " --claim NAMESPACE/NAME"}},
		"two nodes have data of one name": {objects: []client.Object{node(recorded(lost, "shop/db")), onNode(node(recorded(lost, "shop/db")), "n2")}, node: "n1",
			want: []string{"Refuse|n1|" + lost + "|shop/db|pool vg0 of node n2 has data of the same name: compare them, and adopt one by its name"}},
		"two volumes were made for one claim": {objects: []client.Object{node(recorded(lost, "shop/db"), recorded(other, "shop/db"))}, want: []string{
			"Refuse|n1|" + lost + "|shop/db|2 volumes were made for claim shop/db: choose one with kubectl berth adopt n1 " + lost + " --claim NAMESPACE/NAME",
			"Refuse|n1|" + other + "|shop/db|2 volumes were made for claim shop/db: choose one with kubectl berth adopt n1 " + other + " --claim NAMESPACE/NAME"}},
		"the claim has another PersistentVolume": {objects: []client.Object{node(recorded(lost, "shop/db")), claimed("another", "younger")},
			want: []string{"Refuse|n1|" + lost + "|shop/db|claim shop/db has PersistentVolume younger: name another claim with kubectl berth adopt n1 " + lost + " --claim NAMESPACE/NAME"}},
		"another PersistentVolume is kept for the claim": {objects: []client.Object{node(recorded(lost, "shop/db")), exported(other)},
			want: []string{"Refuse|n1|" + lost + "|shop/db|claim shop/db has PersistentVolume data: name another claim with kubectl berth adopt n1 " + lost + " --claim NAMESPACE/NAME"}},
		"the data is to be deleted": {objects: []client.Object{forgetting(node(recorded(lost, "shop/db")), lost)},
			want: []string{"Refuse|n1|" + lost + "|shop/db|it is to be deleted: kubectl berth forget --undo n1 " + lost}},
		"a Volume of that name is elsewhere": {objects: []client.Object{node(recorded(lost, "shop/db")), volume(lost, "n2")},
			want: []string{"Refuse|n1|" + lost + "|shop/db|refused: Volume " + lost + " exists and is on n2: what node n1 has may be older, and is left alone"}},
		"the Volume is of another driver": {objects: []client.Object{node(recorded(lost, "shop/db")), theirs(lost)},
			want: []string{"Refuse|n1|" + lost + "|shop/db|Volume " + lost + " is of driver another.example.org"}},
		"the PersistentVolume is being deleted": {objects: []client.Object{node(recorded(lost, "shop/db")), exported(lost, going)},
			want: []string{"Refuse|n1|" + lost + "|shop/db|PersistentVolume data is being deleted"}},
		"several classes use the pool": {objects: []client.Object{serving(node(recorded(lost, "shop/db")), "fast", "slow")},
			want: []string{"Refuse|n1|" + lost + "|shop/db|refused: pool vg0 serves these PoolClasses: [fast, slow]: say which it is with --pool-class"}},
		"several classes use the pool, and one is named": {objects: []client.Object{serving(node(recorded(lost, "shop/db")), "fast", "slow")}, class: "slow",
			want: []string{"Adopt|n1|" + lost + "|shop/db|"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, planned(t, tc.node, tc.class, tc.objects...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPlanIsCarriedOutAndCanBeCarriedOutAgain(t *testing.T) {
	c := cluster(t, interceptor.Funcs{}, node(orphaned(photo, from(lost)), recorded(lost, "shop/db"), orphaned(other)), claimed("another", ""))
	for round, want := range [][]string{
		{"Adopt true", "Refuse false", "Adopt true"}, {"None false", "Refuse false", "None false"},
	} {
		facts, err := Gather(t.Context(), c, "", "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range Carry(t.Context(), c, Plan(facts), "", "") {
			got = append(got, string(s.Action)+map[bool]string{true: " true", false: " false"}[s.Done])
			if s.Error != "" {
				t.Error(s.Error)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
	}
	pv, s := &corev1.PersistentVolume{}, &v1alpha1.Snapshot{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: lost}, pv); err != nil || pv.Spec.ClaimRef.Namespace != "shop" || pv.Spec.ClaimRef.Name != "db" {
		t.Errorf("%v: %+v", err, pv.Spec.ClaimRef)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: photo}, s); err != nil || s.Spec.PoolClass != "fast" {
		t.Errorf("%v: %+v", err, s.Spec)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: other}, &v1alpha1.Volume{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("what was refused was made: %v", err)
	}
}

func TestAStepThatFailsKeepsNoOtherBack(t *testing.T) {
	c := cluster(t, interceptor.Funcs{}, node(recorded(lost, "shop/db"), recorded(other, "shop/web")))
	facts, err := Gather(t.Context(), c, "", "")
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan(facts)
	late := claimed("late", "younger") // bound after the plan was made
	if err := c.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	steps := Carry(t.Context(), c, plan, "", "")
	if steps[0].Done || !strings.Contains(steps[0].Error, "has PersistentVolume younger") || !steps[1].Done {
		t.Errorf("%+v", steps)
	}
}
