package rules

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

var (
	noPowerRecord = denied("berth-power-records", "only who may create powerrecords.berth.dev says that a Node's machine is off")
	podWithoutUID = denied("berth-controller-pods", "a controller ends a pod only by its UID")
	onlyItsLabels = denied("berth-controller-nodes", "a controller changes only the labels of volumes on a Node")
	onlyInUse     = denied("berth-controller-node-status", "a controller changes only the volumes in use in the status of a Node")
	onlyOffTheUse = denied("berth-controller-node-status", "a controller takes only shared disks of Berth off the volumes in use of a Node, and adds none")
	noOtherSecret = denied("berth-controller-secrets", "a controller makes no Secret but the authority of nodes' certificates")
	podOfNoClaim  = denied("berth-controller-pods", "a controller ends only pods that are on a node and use a claim")
)

// oversightRefusals are those that the tests of this file, of policy_peers_test.go and of policy_failover_test.go see.
var oversightRefusals = []string{noPowerRecord, podWithoutUID, onlyItsLabels, onlyInUse, onlyOffTheUse, noOtherSecret, podOfNoClaim, mayNotAsk, asksNoStandby, asksKey}

// user returns a client of a user whose role has some rules.
func user(t *testing.T, env *apitest.Environment, name string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	role := v1alpha1.VolumeName(t.Name() + name)
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		},
	} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	config := rest.CopyConfig(env.Config)
	config.Impersonate.UserName = name
	c, err := client.New(config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOnlyAPowerSystemSaysThatAMachineIsOff(t *testing.T) {
	env := apitest.Start(t)
	nodes := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"*"}}
	kubelet := user(t, env, "some-kubelet", nodes)
	power := user(t, env, "power-system", nodes, rbacv1.PolicyRule{APIGroups: []string{"berth.dev"}, Resources: []string{"powerrecords"}, Verbs: []string{"create"}})

	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeName(t.Name())}}
	says := func(value string) *corev1.Node {
		o := n.DeepCopy()
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.PoweredOffAnnotation, value)
		return o
	}
	expect(t, kubelet.Create(t.Context(), says("new")), noPowerRecord)
	if err := env.Client.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(n.DeepCopy())
	expect(t, kubelet.Patch(t.Context(), says("off"), patch), noPowerRecord)
	expect(t, kubelet.Status().Patch(t.Context(), says("off"), patch), noPowerRecord)
	expect(t, power.Patch(t.Context(), says("off"), patch), "")
	other := says("off")
	other.Labels = map[string]string{"a": "b"}
	expect(t, kubelet.Patch(t.Context(), other, client.MergeFrom(says("off"))), "") // it leaves the record as it is
	expect(t, kubelet.Patch(t.Context(), n.DeepCopy(), client.MergeFrom(says("off"))), noPowerRecord)
}

func TestAControllerEndsOnlyPodsOfClaimsAndByTheirUID(t *testing.T) {
	env := apitest.Start(t)
	controller := user(t, env, "system:serviceaccount:"+apitest.Namespace+":"+apitest.ControllerAccount,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
	pod := func(name, node string, claims bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		p.Spec.NodeName, p.Spec.Containers = node, []corev1.Container{{Name: "c", Image: "i"}}
		p.Spec.AutomountServiceAccountToken = new(false)
		if claims {
			p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		}
		if err := env.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	at := client.GracePeriodSeconds(0)
	used := pod("oversight-used", "n1", true)
	expect(t, controller.Delete(t.Context(), used, at), podWithoutUID)
	for _, p := range []*corev1.Pod{pod("oversight-plain", "n1", false), pod("oversight-nowhere", "", true)} {
		expect(t, controller.Delete(t.Context(), p, at, client.Preconditions{UID: &p.UID}), podOfNoClaim)
	}
	expect(t, controller.Delete(t.Context(), used, at, client.Preconditions{UID: &used.UID}), "")
}

func TestAControllerChangesOnlyTheLabelsOfVolumesOnANode(t *testing.T) {
	env := apitest.Start(t)
	controller := user(t, env, "system:serviceaccount:"+apitest.Namespace+":"+apitest.ControllerAccount,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}})
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeName(t.Name()), Labels: map[string]string{"theirs": "a"}}}
	if err := env.Client.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ patch, refusal string }{
		{`{"metadata":{"labels":{"berth.node-restriction.kubernetes.io/pvc-1":"true"}}}`, ""},
		{`{"metadata":{"labels":{"berth.node-restriction.kubernetes.io/pvc-1":null}}}`, ""},
		{`{"metadata":{"labels":{"theirs":"b"}}}`, onlyItsLabels},
		{`{"metadata":{"labels":{"theirs":null}}}`, onlyItsLabels},
		{`{"metadata":{"labels":{"other":"a"}}}`, onlyItsLabels},
		{`{"metadata":{"annotations":{"a":"b"}}}`, onlyItsLabels},
		{`{"spec":{"unschedulable":true}}`, onlyItsLabels},
	} {
		t.Run(test.patch, func(t *testing.T) {
			o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
			expect(t, controller.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(test.patch))), test.refusal)
		})
	}
}

func TestAControllerTakesOnlySharedDisksOffTheVolumesInUseOfANode(t *testing.T) {
	env := apitest.Start(t)
	controller := user(t, env, "system:serviceaccount:"+apitest.Namespace+":"+apitest.ControllerAccount,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}})
	const inUse = `"kubernetes.io/csi/other.example.com^a","kubernetes.io/csi/disk.berth.dev^b","kubernetes.io/csi/disk.berth.dev^c"`
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeName(t.Name()), Labels: map[string]string{"theirs": "a"}}}
	if err := env.Client.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	status := func(c client.Client, patch string) error {
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		return c.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	for _, test := range []struct{ patch, refusal string }{
		{`{"status":{"volumesInUse":["kubernetes.io/csi/other.example.com^a","kubernetes.io/csi/disk.berth.dev^c"]}}`, ""},
		{`{"status":{"volumesInUse":["kubernetes.io/csi/other.example.com^a"]}}`, ""},
		{`{"spec":{"unschedulable":true}}`, ""}, // the API server leaves that as it is
		{`{"status":{"volumesInUse":["kubernetes.io/csi/disk.berth.dev^b","kubernetes.io/csi/disk.berth.dev^c"]}}`, onlyOffTheUse},
		{`{"status":{"volumesInUse":null}}`, onlyOffTheUse},
		{`{"status":{"volumesInUse":[` + inUse + `,"kubernetes.io/csi/disk.berth.dev^d"]}}`, onlyOffTheUse},
		{`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, onlyInUse},
		{`{"status":{"conditions":null}}`, onlyInUse},
		{`{"status":{"nodeInfo":{"bootID":"other"}}}`, onlyInUse},
		{`{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}`, onlyInUse},
		{`{"metadata":{"labels":{"theirs":"b"}}}`, onlyInUse},
		{`{"metadata":{"annotations":{"a":"b"}}}`, onlyInUse},
		{`{"metadata":{"finalizers":["example.com/a"]}}`, onlyInUse},
	} {
		t.Run(test.patch, func(t *testing.T) {
			if err := status(env.Client, `{"status":{"conditions":[{"type":"Ready","status":"False"}],"volumesInUse":[`+inUse+`]}}`); err != nil {
				t.Fatal(err)
			}
			expect(t, status(controller, test.patch), test.refusal)
		})
	}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		t.Fatal(err)
	}
	if n.Spec.Unschedulable || n.Labels["theirs"] != "a" {
		t.Errorf("by its status a controller has changed the Node to %+v", n)
	}
}
