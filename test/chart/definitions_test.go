//go:build helm

package chart

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A definition that goes takes each Volume along, and the next agents remove the data of a Volume that is being deleted.
func TestTheDefinitionsOutliveTheirRelease(t *testing.T) {
	for name, values := range cases {
		out, err := helm(t, "--values", values)
		if err != nil {
			t.Fatal(err)
		}
		definitions := 0
		for text := range strings.SplitSeq(out, "---\n") {
			var o struct {
				Kind     string `json:"kind"`
				Metadata struct {
					Name        string            `json:"name"`
					Annotations map[string]string `json:"annotations"`
				} `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(text), &o); err != nil {
				t.Fatal(err)
			}
			if o.Kind != "CustomResourceDefinition" {
				continue
			}
			definitions++
			if o.Metadata.Annotations["helm.sh/resource-policy"] != "keep" {
				t.Errorf("%s: Helm deletes %s with the release", name, o.Metadata.Name)
			}
		}
		if definitions != 5 {
			t.Errorf("%s: %d definitions", name, definitions)
		}
	}
	if _, err := helm(t, "--set", "imageRegistry=localhost,crds.keep=false"); err == nil || !strings.Contains(err.Error(), "keep") {
		t.Errorf("a value that would have them deleted is taken: %v", err)
	}
}
