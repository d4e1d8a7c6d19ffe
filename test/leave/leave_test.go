//go:build helm

package leave

import (
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// released is a chart in a registry, as the pages name it.
var released = regexp.MustCompile(`oci://REGISTRY/charts/(\S+) --version VERSION`)

const namespace = "berth-system"

const volume = "pvc-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f"

// programs lists the names of what runs Berth, and of the policies that guard its objects.
func (s shell) programs(t *testing.T) string {
	t.Helper()
	var names []string
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.DaemonSetList{}, &admissionv1.ValidatingAdmissionPolicyList{}} {
		if err := s.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			names = append(names, o.(client.Object).GetName())
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(names, " ")
}

func (s shell) exists(t *testing.T, o client.Object, name string) bool {
	t.Helper()
	err := s.Get(t.Context(), client.ObjectKey{Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	return err == nil
}

func (s shell) makeVolume(t *testing.T) {
	t.Helper()
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: volume, Finalizers: []string{v1alpha1.VolumeFinalizer}}}
	v.Spec = v1alpha1.VolumeSpec{
		Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Block, PoolClass: "fast",
		Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementNode, Replication: v1alpha1.Replication{Factor: 1},
	}
	if err := s.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
}

// The commands are those of docs/leave.md, in the order in which a user would give them.
func TestBerthCanBeUninstalledInstalledAgainAndLeft(t *testing.T) {
	s, commands := newShell(t), page(t, "../../docs/leave.md")
	section := func(heading string) string {
		t.Helper()
		if len(commands[heading]) == 0 {
			t.Fatalf("docs/leave.md has no commands below %q", heading)
		}
		var out strings.Builder
		for _, command := range commands[heading] {
			out.WriteString(s.run(t, command))
		}
		return out.String()
	}
	s.run(t, "helm install berth oci://REGISTRY/charts/berth --version VERSION -n berth-system --create-namespace")
	s.run(t, "helm install berth-classes oci://REGISTRY/charts/berth-classes --version VERSION -n berth-system --values testdata/classes.yaml")
	s.makeVolume(t)
	before := s.programs(t)

	section("Uninstall")
	if left := s.programs(t); left != "" {
		t.Errorf("after the uninstallation there are still %s", left)
	}
	for name, o := range map[string]client.Object{volume: &v1alpha1.Volume{}, "fast": &v1alpha1.PoolClass{}, "local.berth.dev": &storagev1.CSIDriver{}} {
		if !s.exists(t, o, name) {
			t.Errorf("%T %s is gone", o, name)
		}
	}

	// The second command is for another name: first as the same release, then as if of another.
	s.run(t, commands["Install again"][0])
	if again := s.programs(t); again != before {
		t.Errorf("after the second installation there are %s, and before there were %s", again, before)
	}
	section("Uninstall")
	s.run(t, strings.Replace(commands["Install again"][1], "install berth ", "install other ", 1))
	s.run(t, "helm uninstall other -n berth-system")
	s.run(t, commands["Install again"][1])

	s.run(t, "helm upgrade berth oci://REGISTRY/charts/berth --version VERSION -n berth-system --reset-then-reuse-values --wait --set crds.enabled=false")
	if !s.exists(t, &v1alpha1.Volume{}, volume) {
		t.Error("an upgrade without the definitions deletes the volumes")
	}
	s.run(t, "helm upgrade berth oci://REGISTRY/charts/berth --version VERSION -n berth-system --reset-then-reuse-values --wait --set agent.logLevel=debug")
	section("Go back to the version before")
	var agents appsv1.DaemonSet
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "berth-agent"}, &agents); err != nil {
		t.Fatal(err)
	}
	if args := strings.Join(agents.Spec.Template.Spec.Containers[0].Args, " "); strings.Contains(args, "debug") {
		t.Errorf("after the rollback the agents have %s", args)
	}
	section("Reach your data without Berth")

	// The agent would take the finalizer away when the data is gone.
	s.run(t, "kubectl delete volumes.berth.dev "+volume+" --wait=false")
	s.run(t, strings.ReplaceAll(`kubectl patch volumes.berth.dev NAME --type merge -p '{"metadata":{"finalizers":null}}'`, "NAME", volume))
	commands["Leave for good"][len(commands["Leave for good"])-1] += " --wait=false" // no controller empties a namespace here
	section("Leave for good")
	for name, o := range map[string]client.Object{volume: &v1alpha1.Volume{}, "local.berth.dev": &storagev1.CSIDriver{}, "fast": &storagev1.StorageClass{}} {
		if s.exists(t, o, name) {
			t.Errorf("%T %s is left", o, name)
		}
	}
	var ns corev1.Namespace
	if err := s.Get(t.Context(), client.ObjectKey{Name: namespace}, &ns); err == nil && ns.DeletionTimestamp == nil {
		t.Error("the namespace is left")
	}
}
