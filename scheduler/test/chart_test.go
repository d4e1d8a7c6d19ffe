package test

import (
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/scheduler/internal/controlplane"
)

// account is the scheduler's service account in the chart.
const account = "berth-scheduler"

// root is the directory of the repository.
var root = filepath.Join("..", "..")

// installScheduler installs the chart's objects for the scheduler except its
// Deployment, so that the process runs with the chart's configuration and with no
// more rights than the chart gives. It returns the path of the configuration.
func (c *cluster) installScheduler(t *testing.T, values ...string) string {
	t.Helper()
	objects, err := controlplane.Render(t.Context(), root, apitest.Namespace, values...)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			continue
		}
		if err := client.IgnoreAlreadyExists(c.Client.Create(t.Context(), object)); err != nil {
			t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	path, err := controlplane.Connect(t.TempDir(), controlplane.Configuration(objects), schedulerConnection(t, c.Environment))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// schedulerConnection writes a connection with a token of the scheduler's account.
func schedulerConnection(t *testing.T, e *apitest.Environment) string {
	t.Helper()
	token := &authenticationv1.TokenRequest{}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: account}}
	if err := e.Client.SubResource("token").Create(t.Context(), owner, token); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(e.Config)
	config.BearerToken = token.Status.Token
	return kubeconfig(t, config)
}
