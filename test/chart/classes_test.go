//go:build helm

package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"berth.dev/berth/api/v1alpha1"
)

func TestClassesHaveOnlyFieldsThatTheirKindsKnow(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	decoded := 0
	for _, text := range render(t, classes) {
		if strings.Contains(text, "apiVersion: snapshot.storage.k8s.io/") {
			continue // the snapshot API is no part of Kubernetes
		}
		if _, _, err := decoder.Decode([]byte(text), nil, nil); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
		decoded++
	}
	if decoded != 4 {
		t.Errorf("there are %d classes and capacities, want 4", decoded)
	}
}

// docs/install.md shows one class as objects and as values of this chart.
func TestTheValuesInTheInstallationPageMakeItsClasses(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "in a file `classes.yaml`:\n\n```yaml\n")
	values, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("docs/install.md shows no classes.yaml")
	}
	file := filepath.Join(t.TempDir(), "classes.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := helm(t, "--values", classes, "--values", file) // lists of the second replace those of the first
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"kind: PoolClass", "- vg-nvme", "kind: StorageClass", "poolClass: \"fast\"", "allowVolumeExpansion: true", "volumeBindingMode: WaitForFirstConsumer"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in\n%s", part, out)
		}
	}
}
