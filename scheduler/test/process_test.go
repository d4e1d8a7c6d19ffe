package test

import (
	"testing"

	"k8s.io/client-go/rest"

	"berth.dev/berth/scheduler/internal/controlplane"
)

// run takes a process that was just started and kills it when the test ends. Its
// log is shown when the test fails.
func run(t *testing.T, p *controlplane.Process, err error) *controlplane.Process {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", p.Name(), p.Tail())
		}
	})
	return p
}

// kubeconfig writes a file with a connection to the API server.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	path, err := controlplane.Kubeconfig(t.TempDir(), config)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
