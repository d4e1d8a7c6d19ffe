package apitest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// chartDir finds the chart from the directory that `go test` runs in.
func chartDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for the chart: %w", err)
	}
	for {
		chart := filepath.Join(dir, "charts", "berth")
		if _, err := os.Stat(filepath.Join(chart, "Chart.yaml")); err == nil {
			return chart, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no charts/berth/Chart.yaml in any directory above this one: run the tests in the repository")
		}
		dir = parent
	}
}

// readObjects reads every object of the YAML files in a directory.
func readObjects(dir string) ([]*unstructured.Unstructured, error) {
	pattern := filepath.Join(dir, "*.yaml")
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", pattern, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no file matches %s", pattern)
	}
	var all []*unstructured.Unstructured
	for _, path := range paths {
		objects, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

func readFile(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// Definitions returns the custom resource definitions of the chart.
func Definitions(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	return chartObjects(t, definitions)
}

// Policies returns the admission policies of the chart and their bindings, for the
// account of the default names.
func Policies(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	return chartObjects(t, policies)
}

// Where the chart has its objects.
const (
	definitions = "crd-bases"
	policies    = "admission"
)

func chartObjects(t testing.TB, dir string) []*unstructured.Unstructured {
	t.Helper()
	chart, err := chartDir()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := readObjects(filepath.Join(chart, dir))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
