package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Render returns the chart's objects for the scheduler in a namespace. root is the
// repository's root; values are in the form of helm's --set.
func Render(ctx context.Context, root, namespace string, values ...string) ([]*unstructured.Unstructured, error) {
	return Template(ctx, root, namespace, []string{"scheduler", "scheduler-rbac"}, append(values, "scheduler.enabled=true")...)
}

// Template returns the objects that some of the chart's templates make.
func Template(ctx context.Context, root, namespace string, templates []string, values ...string) ([]*unstructured.Unstructured, error) {
	args := []string{"template", "berth", filepath.Join(root, "charts", "berth"), "--namespace", namespace,
		"--kube-version", "1.37.0", "--set", "imageRegistry=localhost"}
	for _, name := range templates {
		args = append(args, "--show-only", "templates/"+name+".yaml")
	}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	helm := exec.CommandContext(ctx, filepath.Join(root, "bin", "helm"), args...) //nolint:forbidigo // a tool of tests
	out, err := helm.Output()
	if err != nil {
		return nil, fmt.Errorf("rendering the chart (`make bin/helm` makes helm): %w", err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the rendered chart: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Configuration is the scheduler's configuration among the objects of Render, or
// empty.
func Configuration(objects []*unstructured.Unstructured) string {
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" {
			text, _, _ := unstructured.NestedString(object.Object, "data", "config.yaml")
			return text
		}
	}
	return ""
}
