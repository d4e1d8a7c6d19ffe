package rules

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/apitest"
)

var example = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// objects are those of the examples in a document. What is no whole object, like a
// part of a configuration, is left out.
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

func TestTheAPIServerTakesTheExamplesOfTheDocuments(t *testing.T) {
	env := apitest.Start(t)
	documents, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	tried := 0
	for _, document := range documents {
		for _, o := range objects(t, document) {
			tried++
			if gvk := o.GroupVersionKind(); gvk.Kind == "Pod" || gvk.Kind == "PersistentVolumeClaim" {
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
