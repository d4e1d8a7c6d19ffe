package test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"berth.dev/berth/internal/apitest"
)

// account is the scheduler's in the chart.
const account = "berth-scheduler"

// installScheduler installs what the chart has for the scheduler but for its
// Deployment, so that the process runs with the chart's configuration and with no
// more rights than the chart gives. It returns the path of the configuration.
func (c *cluster) installScheduler(t *testing.T) string {
	t.Helper()
	var configuration string
	for _, object := range c.render(t) {
		switch object.GetKind() {
		case "Deployment":
			continue
		case "ConfigMap":
			configuration, _, _ = unstructured.NestedString(object.Object, "data", "config.yaml")
		}
		if err := client.IgnoreAlreadyExists(c.Client.Create(t.Context(), object)); err != nil {
			t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	return c.connect(t, configuration)
}

// render runs helm on the chart.
func (c *cluster) render(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	root := filepath.Join("..", "..")
	helm := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "helm"), "template", "berth", filepath.Join(root, "charts", "berth"), //nolint:forbidigo // the test's own tool
		"--namespace", apitest.Namespace, "--set", "scheduler.enabled=true",
		"--show-only", "templates/scheduler.yaml", "--show-only", "templates/scheduler-rbac.yaml")
	out, err := helm.Output()
	if err != nil {
		t.Fatalf("rendering the chart (`make bin/helm` makes helm): %v", err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// connect adds the test's connection to a configuration, with a token of the
// scheduler's account. There is no election: a scheduler that was killed would
// hold up the next one for its lease.
func (c *cluster) connect(t *testing.T, configuration string) string {
	t.Helper()
	token := &authenticationv1.TokenRequest{}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: account}}
	if err := c.Client.SubResource("token").Create(t.Context(), owner, token); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token.Status.Token

	var content map[string]any
	if err := sigsyaml.Unmarshal([]byte(configuration), &content); err != nil || content["profiles"] == nil {
		t.Fatalf("the chart's configuration cannot be read: %v\n%s", err, configuration)
	}
	content["clientConnection"] = map[string]any{"kubeconfig": kubeconfig(t, config), "qps": 1000, "burst": 1000}
	content["leaderElection"] = map[string]any{"leaderElect": false}
	text, err := sigsyaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
