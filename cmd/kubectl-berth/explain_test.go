package main

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule/cases"
)

// objects of a case, with a Node and a Lease for each StorageNode.
func objects(c *cases.Case) []client.Object {
	list := []client.Object{c.Pod}
	for i := range c.StorageNodes {
		name := c.StorageNodes[i].Name
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "berth-system", Name: v1alpha1.AgentLeasePrefix + name}}
		list = append(list, &c.StorageNodes[i], node, lease)
	}
	for i := range c.PoolClasses {
		list = append(list, &c.PoolClasses[i])
	}
	for i := range c.StorageClasses {
		list = append(list, &c.StorageClasses[i])
	}
	for i := range c.Claims {
		list = append(list, &c.Claims[i])
	}
	for i := range c.Volumes {
		list = append(list, &c.Volumes[i])
	}
	return list
}

// run runs the command in the cluster of a case.
func run(t *testing.T, change func([]client.Object) []client.Object, funcs interceptor.Funcs, args ...string) (out, notes string, err error) {
	t.Helper()
	c := cases.All()["volumes of others are in the way"]
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(change(objects(&c))...).WithInterceptorFuncs(funcs).Build()
	var stdout, stderr strings.Builder
	root := newRootCommand(func(target) (client.Reader, string, error) { return reader, "shop", nil })
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func same(list []client.Object) []client.Object { return list }

func TestExplainPrintsTheAnswerOfTheLedger(t *testing.T) {
	for _, args := range [][]string{{"explain", "pod", "web"}, {"explain", "pvc", "1"}} {
		out, notes, err := run(t, same, interceptor.Funcs{}, args...)
		if err != nil || notes != "" {
			t.Fatalf("%v: %v, %s", args, err, notes)
		}
		for _, told := range []string{"shop/", "large: fits, claim 1 in vg0", "small: does not fit: pool vg0 has 1Gi free, 2Gi asked"} {
			if !strings.Contains(out, told) {
				t.Errorf("%v: %q lacks %q", args, out, told)
			}
		}
	}
}

func TestANodeWithoutAnAgentIsSaidSo(t *testing.T) {
	out, _, err := run(t, func(list []client.Object) []client.Object {
		kept := list[:0]
		for _, o := range list {
			if _, lease := o.(*coordinationv1.Lease); !lease {
				kept = append(kept, o)
			}
		}
		return kept
	}, interceptor.Funcs{}, "explain", "pod", "web")
	if err != nil || !strings.Contains(out, "large: takes nothing new: its berth-agent has no Lease") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestExplainNotesThatLeasesMayNotBeRead(t *testing.T) {
	out, notes, err := run(t, same, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		if _, lease := list.(*coordinationv1.LeaseList); lease {
			return apierrors.NewForbidden(coordinationv1.Resource("leases"), "", nil)
		}
		return c.List(ctx, list, o...)
	}}, "explain", "pod", "web")
	if err != nil || !strings.Contains(out, "large: fits") || !strings.Contains(notes, "may not be read") {
		t.Errorf("%v: %s%s", err, out, notes)
	}
}

func TestExplainNamesAMissingPodOrClaim(t *testing.T) {
	for told, args := range map[string][]string{
		"reading pod shop/nobody":          {"explain", "pod", "nobody"},
		"claim shop/nobody does not exist": {"explain", "pvc", "nobody"},
		"accepts 1 arg":                    {"explain", "pod"},
	} {
		if _, _, err := run(t, same, interceptor.Funcs{}, args...); err == nil || !strings.Contains(err.Error(), told) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestAnExplanationIsADocumentToo(t *testing.T) {
	want := `holders: []
nodes:
- answer: fits, claim 1 in vg0
  fits: true
  node: large
  pools:
  - answer: Fits
    foreign: 0
    free: 21474836480
    needs: 2147483648
    pool: vg0
    total: 21474836480
    used: 0
    volume: claim 1
- answer: 'does not fit: pool vg0 has 1Gi free, 2Gi asked'
  fits: false
  node: small
  pools:
  - answer: NoRoom
    foreign: 0
    free: 1073741824
    needs: 2147483648
    pool: vg0
    total: 4294967296
    used: 3221225472
    volume: claim 1
otherNodes: 0
subject: claim shop/1
volumes:
- bytes: 2147483648
  class: fast
  name: claim 1
`
	out, _, err := run(t, same, interceptor.Funcs{}, "explain", "pvc", "1", "-o", "yaml")
	if diff := cmp.Diff(want, out); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestNamesAreCompleted(t *testing.T) {
	for want, args := range map[string][]string{
		"1\n:4\n":                {"__complete", "explain", "pvc", ""},
		"web\n:4\n":              {"__complete", "explain", "pod", ""},
		":4\n":                   {"__complete", "explain", "pod", "web", ""},
		"wide\njson\nyaml\n:4\n": {"__complete", "doctor", "-o", ""},
	} {
		out, _, err := run(t, same, interceptor.Funcs{}, args...)
		if err != nil || out != want {
			t.Errorf("%v: %v, %q", args, err, out)
		}
	}
	if out, _, err := say(t, wreck(t), "__complete", "adopt", "node-3", ""); err != nil || out != lost+"\n:4\n" {
		t.Errorf("%v: %q", err, out)
	}
}

// leaves are the commands that do something.
func leaves(cmd *cobra.Command) (all []*cobra.Command) {
	for _, c := range cmd.Commands() {
		all = append(all, leaves(c)...)
	}
	if cmd.Runnable() {
		all = append(all, cmd)
	}
	return all
}

func TestEachCommandHasExamplesAndLinesThatFitATerminal(t *testing.T) {
	root := newRootCommand(connect)
	for _, cmd := range leaves(root) {
		if cmd.Short == "" || !strings.Contains(cmd.Example, "kubectl berth "+cmd.Name()) && !strings.Contains(cmd.Example, "kubectl berth explain "+cmd.Name()) {
			t.Errorf("%s has no example: %q", cmd.CommandPath(), cmd.Example)
		}
		for line := range strings.Lines(cmd.Short + "\n" + cmd.Long + "\n" + cmd.Example) {
			if len(line) > 88 {
				t.Errorf("%s: a line of the help has %d characters: %s", cmd.CommandPath(), len(line), line)
			}
		}
	}
}

// unbound is the cluster of disks whose claim has no volume, and a LUN that is too small.
func unbound() []client.Object {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "san"}, Provisioner: v1alpha1.DiskDriverName, Parameters: map[string]string{"poolClass": "san"}}
	l := &v1alpha1.LUN{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
	l.Spec = v1alpha1.LUNSpec{PoolClass: "san", Capacity: resource.MustParse("1Gi"), Disk: v1alpha1.SharedDisk{Handle: "small", Identity: "small"}}
	list := append(disks(), class, l)
	for _, o := range list {
		if claim, is := o.(*corev1.PersistentVolumeClaim); is {
			claim.Spec.VolumeName, claim.Spec.StorageClassName = "", new("san")
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		}
	}
	return list
}

func TestAClaimOfASharedDiskIsExplainedByWhatItWaitsForAndItsNodes(t *testing.T) {
	waits := func(v *v1alpha1.Volume) {
		v.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionTrue, Reason: "NoProof", Message: "taint it"}}
	}
	for _, test := range []struct {
		list       []client.Object
		args, told []string
	}{
		{unbound(), []string{"explain", "pvc", "demo"}, []string{"claim shop/demo of a shared disk is Waiting\n  it has no volume yet: ", `no LUN of poolClass "san" with 2Gi is free; of its 1 LUNs: 1 too small`}},
		{disks(waits), []string{"explain", "pod", "db"}, []string{"pod shop/db is on node node-1.\n", "shared disk " + demo + ", is Waiting\n  taint it\n", "node node-1  Primary  Ready", "node node-2  Standby  Ready"}},
		{disks(waits), []string{"explain", "pvc", "demo", "-o", "json"}, []string{`"sharedDisks": [`, `"message": "taint it"`, `"role": "Standby"`, `"subject": "claim shop/demo"`}},
	} {
		out, notes, err := run(t, func([]client.Object) []client.Object { return test.list }, interceptor.Funcs{}, test.args...)
		if err != nil || notes != "" || strings.Contains(out, "has no volumes of Berth's") {
			t.Errorf("%v: %v, %s: %s", test.args, err, notes, out)
		}
		for _, told := range test.told {
			if !strings.Contains(out, told) {
				t.Errorf("%v: %q lacks %q", test.args, out, told)
			}
		}
	}
}

func TestAClusterThatKnowsNoLUNsIsAnsweredForAllTheSame(t *testing.T) {
	for want, failure := range map[string]error{
		"":                           &meta.NoKindMatchError{GroupKind: v1alpha1.GroupVersion.WithKind("LUN").GroupKind()},
		"note: LUNs may not be read": apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("luns").GroupResource(), "", nil),
	} {
		_, notes, err := run(t, installed, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*v1alpha1.LUNList); is {
				return failure
			}
			return c.List(ctx, list, opts...)
		}}, "status")
		if err != nil || !strings.HasPrefix(notes, want) || want == "" && notes != "" {
			t.Errorf("%v: %q, want %q", err, notes, want)
		}
	}
}
