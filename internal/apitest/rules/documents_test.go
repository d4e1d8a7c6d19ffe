package rules

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"berth.dev/berth/internal/apitest"
)

var example = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// objects returns the objects of the examples in a document. It leaves out an example
// that is no whole object, like a part of a configuration.
func objects(t *testing.T, document string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var found []*unstructured.Unstructured
	for _, block := range example.FindAllSubmatch(text, -1) {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(block[1]), 4096)
		for {
			u := &unstructured.Unstructured{}
			err := decoder.Decode(&u.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", document, err, block[1])
			}
			if u.GetKind() != "" && u.GetName() != "" {
				found = append(found, u)
			}
		}
	}
	return found
}

// installSnapshotAPI makes the API server know VolumeSnapshots, as the documents
// expect of a cluster that takes them.
func installSnapshotAPI(t *testing.T, env *apitest.Environment) {
	t.Helper()
	const api = "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	module, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Module.Dir}}", api).Output() //nolint:forbidigo // a tool of tests
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "snapshot.*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{Paths: definitions, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
}

func TestTheAPIServerTakesTheExamplesOfTheDocuments(t *testing.T) {
	env := apitest.Start(t)
	installSnapshotAPI(t, env)
	documents, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	tried := 0
	for _, document := range documents {
		for _, o := range objects(t, document) {
			tried++
			if gvk := o.GroupVersionKind(); slices.Contains([]string{"Pod", "PersistentVolumeClaim", "StatefulSet", "VolumeSnapshot", "CSIStorageCapacity"}, gvk.Kind) {
				o.SetNamespace("default")
			}
			strict := &client.CreateOptions{FieldValidation: "Strict", DryRun: []string{"All"}}
			if err := env.Client.Create(t.Context(), o, strict); err != nil {
				t.Errorf("%s: %s %s: %v", filepath.Base(document), o.GetKind(), o.GetName(), err)
			}
		}
	}
	if tried < 5 {
		t.Errorf("only %d examples were found", tried)
	}
}
