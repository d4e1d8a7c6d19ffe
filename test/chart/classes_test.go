//go:build helm

package chart

import (
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
