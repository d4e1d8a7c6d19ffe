package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/quarantine"
)

const (
	lost    = "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"
	missing = "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e10"
	photo   = "snap-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"
)

// wreck is a cluster with data that lost its object a day ago, and an object that
// lost its data.
func wreck(t *testing.T) client.Client {
	t.Helper()
	since := metav1.Unix(0, 0)
	n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "node-3"}}
	n.Status.Features = v1alpha1.AllFeatures()
	n.Status.Pools = []v1alpha1.Pool{{Name: "vg0", Classes: []string{"fast"}, Inventory: []v1alpha1.InventoryItem{{
		Volume: lost, Allocated: resource.MustParse("1Gi"),
		Orphan: &v1alpha1.Orphan{Since: since, Reason: v1alpha1.OrphanNoObject, Message: "it has no object", Size: resource.MustParse("1Gi"), Filesystem: "ext4"},
	}}}}
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: missing}}
	v.Spec.Capacity = resource.MustParse("2Gi")
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "node-3", Pool: "vg0"}}
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "node-3", State: v1alpha1.ReplicaFailed, Reason: v1alpha1.ReasonDeviceMissing, Message: "the pool no longer has it"}}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(n, v).WithStatusSubresource(n).Build()
}

// say runs a command in a cluster, a day after its data lost its object.
func say(t *testing.T, c client.Client, args ...string) (out, notes string, err error) {
	t.Helper()
	open := func(target) (client.Client, string, error) { return c, "shop", nil }
	var t0 target
	root := &cobra.Command{Use: "kubectl-berth", SilenceUsage: true, SilenceErrors: true}
	now := testingclock.NewFakePassiveClock(time.Unix(86400, 0))
	root.AddCommand(newOrphansCommand(&t0, open, now), newAdoptCommand(&t0, open), newForgetCommand(&t0, open, now))
	var stdout, stderr strings.Builder
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestOrphansAreListedInATable(t *testing.T) {
	out, notes, err := say(t, wreck(t), "orphans")
	if err != nil || notes != "" {
		t.Fatal(err, notes)
	}
	want := `NODE    POOL  NAME                                      SIZE  MISSING  AGE  REASON         DELETED
node-3  vg0   pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f  1Gi   Object   24h  NoObject       never
node-3  vg0   pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e10  2Gi   Data     -    DeviceMissing  -
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	wide, _, err := say(t, wreck(t), "orphans", "-o", "wide")
	if err != nil || !strings.Contains(wide, "it has no object") || !strings.Contains(wide, "the pool no longer has it") {
		t.Errorf("%v: %s", err, wide)
	}
}

func TestOrphansAreListedForPrograms(t *testing.T) {
	out, _, err := say(t, wreck(t), "orphans", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got []quarantine.Orphan
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 2 || got[0].Name != lost || got[1].Missing != quarantine.MissingData {
		t.Errorf("%v: %s", err, out)
	}
	empty := fake.NewClientBuilder().WithScheme(wreck(t).Scheme()).Build()
	if out, notes, err := say(t, empty, "orphans", "-o", "json"); err != nil || out != "[]\n" || notes != "" {
		t.Errorf("%v: %s%s", err, out, notes)
	}
	if out, notes, err := say(t, empty, "orphans"); err != nil || out != "" || notes != "There are no orphans.\n" {
		t.Errorf("%v: %s%s", err, out, notes)
	}
}

func TestWhenDataIsDeletedIsSaid(t *testing.T) {
	now := time.Unix(86400, 0)
	at := func(seconds int64) *metav1.Time { t := metav1.Unix(seconds, 0); return &t }
	for want, o := range map[string]quarantine.Orphan{
		"never":  {Missing: quarantine.MissingObject},
		"now":    {Missing: quarantine.MissingObject, Forgotten: at(86000), Deadline: at(90000)},
		"in 59m": {Missing: quarantine.MissingObject, Forgotten: at(-1), Deadline: at(89999)},
		"in 60m": {Missing: quarantine.MissingObject, Deadline: at(90000)},
		"due":    {Missing: quarantine.MissingObject, Deadline: at(86400)},
		"-":      {Missing: quarantine.MissingData},
	} {
		if got := deleted(o, now); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}

func TestAdoptSaysWhatWasMadeAndHowToUseIt(t *testing.T) {
	c := wreck(t)
	out, _, err := say(t, c, "adopt", "node-3", lost, "--claim", "db")
	want := "Volume " + lost + ": made, 1Gi of PoolClass fast\nPersistentVolume " + lost + ": made, Retain, for claim shop/db\nWhether the data was found: kubectl get bvol " + lost + "\n"
	if err != nil || out != want {
		t.Errorf("%v: %s", err, cmp.Diff(want, out))
	}
	pv := &corev1.PersistentVolume{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: lost}, pv); err != nil || pv.Spec.ClaimRef.Namespace != "shop" {
		t.Errorf("%v: %+v", err, pv.Spec.ClaimRef)
	}
	if out, _, err := say(t, c, "adopt", "node-3", lost); err != nil || strings.Count(out, ": there already,") != 2 {
		t.Errorf("again: %v: %s", err, out)
	}
}

func TestForgetWantsAYesAndCanBeUndone(t *testing.T) {
	c := wreck(t)
	forgotten := func() int {
		n := &v1alpha1.StorageNode{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "node-3"}, n); err != nil {
			t.Fatal(err)
		}
		return len(n.Spec.Forget)
	}
	out, _, err := say(t, c, "forget", "node-3", lost)
	if !errors.Is(err, errUnconfirmed) || out != "This would delete "+lost+", 1Gi in pool vg0 of node node-3\n" || forgotten() != 0 {
		t.Errorf("without --yes: %v, %d forgotten: %s", err, forgotten(), out)
	}
	if out, _, err := say(t, c, "forget", "node-3", lost, "--yes"); err != nil || forgotten() != 1 {
		t.Errorf("with --yes: %v, %d forgotten: %s", err, forgotten(), out)
	}
	if out, _, err := say(t, c, "orphans"); err != nil || !strings.Contains(out, "NoObject       now") {
		t.Errorf("%v: %s", err, out)
	}
	if out, _, err := say(t, c, "forget", "node-3", lost, "--undo"); err != nil || forgotten() != 0 {
		t.Errorf("with --undo: %v, %d forgotten: %s", err, forgotten(), out)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for told, args := range map[string][]string{
		`"xml" is none of wide, json and yaml`:       {"orphans", "-o", "xml"},
		`"a/b/c" is neither NAME nor NAMESPACE/NAME`: {"adopt", "node-3", lost, "--claim", "a/b/c"},
		"reports no orphan " + missing:               {"forget", "node-3", missing, "--yes"},
		"node node-4 does not report":                {"forget", "node-4", lost},
		"was not to be deleted":                      {"forget", "node-3", lost, "--undo"},
		"[undo yes] were all set":                    {"forget", "node-3", lost, "--undo", "--yes"},
		"accepts 2 arg":                              {"adopt", "node-3"},
		"root is the name of no volume":              {"adopt", "node-3", "root"},
		"--volume-snapshot is for snapshots":         {"adopt", "node-3", lost, "--volume-snapshot", "nightly"},
		"--claim and --storage-class are for":        {"adopt", "node-3", photo, "--claim", "db"},
		`--volume-snapshot "/a" is neither NAME nor`: {"adopt", "node-3", photo, "--volume-snapshot", "/a"},
		"reports no orphan " + photo:                 {"adopt", "node-3", photo},
	} {
		if _, _, err := say(t, wreck(t), args...); err == nil || !strings.Contains(err.Error(), told) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestANodeThatIsGoneIsForgottenOnlyWhenThatIsConfirmed(t *testing.T) {
	c := wreck(t)
	said := func() []string {
		v := &v1alpha1.Volume{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: missing}, v); err != nil {
			t.Fatal(err)
		}
		return v1alpha1.ForgottenNodes(v)
	}
	for _, step := range []struct {
		args  []string
		err   error
		out   string
		words int
	}{
		{nil, errUnconfirmed, "These would not wait for node node-3 once they are deleted:\n  Volume " + missing + "\n", 0},
		{[]string{"--yes"}, nil, "These do not wait for node node-3 once they are deleted:\n  Volume " + missing + "\n", 1},
		{[]string{"--undo"}, nil, "These wait for node node-3 when they are deleted:\n  Volume " + missing + "\n", 0},
	} {
		out, _, err := say(t, c, append([]string{"forget", "node-3", "--node-is-gone"}, step.args...)...)
		if !errors.Is(err, step.err) || out != step.out || len(said()) != step.words {
			t.Errorf("%v: %q, %v; the volume says %v", step.args, out, err, said())
		}
	}
	if _, _, err := say(t, c, "forget", "node-3", missing, "--node-is-gone", "--yes"); err == nil {
		t.Error("a name beside --node-is-gone is taken")
	}
}
