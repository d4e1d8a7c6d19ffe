package bundle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/api/v1alpha1"
)

func TestEachKindOfObjectThatBerthDefinesIsInABundle(t *testing.T) {
	paths, err := filepath.Glob("../../charts/berth/crd-bases/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v: no definitions", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		want := of(crd.Spec.Group, crd.Spec.Versions[0].Name, crd.Spec.Names.Kind)
		if !slices.ContainsFunc(kinds, func(k kind) bool { return k.GroupVersionKind == want }) {
			t.Errorf("no %v", want)
		}
	}
}

func TestAttachmentsOfBerthsVolumesAreInABundle(t *testing.T) {
	attached := func(name, attacher string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{Attacher: attacher, NodeName: "n1"}}
	}
	lun := &v1alpha1.LUN{ObjectMeta: metav1.ObjectMeta{Name: "lun-1"}}
	files, _ := collect(t, Options{Reader: reader(t, interceptor.Funcs{}, attached("mine", v1alpha1.DiskDriverName), attached("theirs", "nfs.example.org"), lun), Logs: noisy})
	found := files["objects/volumeattachments.yaml"]
	if !strings.Contains(found, "name: mine") || strings.Contains(found, "theirs") || !strings.Contains(files["objects/luns.yaml"], "name: lun-1") {
		t.Errorf("%s\n%s", found, files["objects/luns.yaml"])
	}
}

func TestTheLastWordsOfOthersContainersStayOut(t *testing.T) {
	state := func(message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "db",
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: message}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 2, Message: message}}}
	}
	for namespace, stays := range map[string]bool{"shop": false, "berth-system": true} {
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: namespace}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{state("connecting as admin with " + canary)}
		p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses = p.Status.ContainerStatuses, p.Status.ContainerStatuses
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: object}
		kept := Redact(o, "berth-system")
		text, err := yaml.Marshal(o.Object)
		if !kept || err != nil || strings.Contains(string(text), canary) != stays || strings.Count(string(text), "exitCode: 2") != 3 {
			t.Errorf("%s: %v: %s", namespace, err, text)
		}
	}
}
