package test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"berth.dev/berth/internal/apitest/authority"
	"berth.dev/berth/internal/controller"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/scheduler/internal/controlplane"
)

// secure are the authorities by which the extender and the schedulers that ask it
// know each other.
type secure struct{ servers, schedulers *authority.Authority }

func newSecure(t *testing.T) secure { return secure{authority.New(t), authority.New(t)} }

// at serves the extender on an address, over TLS and for certified schedulers.
func (s secure) at(t *testing.T, l net.Listener) controllertest.Option {
	t.Helper()
	pair := s.servers.Issue(t, "berth-extender")
	return func(o *controller.Options) {
		o.Extender = controller.Extender{Listener: l, CertFile: pair.CertFile, KeyFile: pair.KeyFile, ClientCAFile: s.schedulers.File}
	}
}

// asks is the entry for the extender in a scheduler's configuration, as it is
// documented.
func (s secure) asks(t *testing.T, at net.Addr) map[string]any {
	t.Helper()
	own := s.schedulers.Issue(t, "system:kube-scheduler")
	return map[string]any{
		"urlPrefix": "https://" + at.String(), "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1,
		"nodeCacheCapable": true, "ignorable": true, "enableHTTPS": true,
		"tlsConfig": map[string]any{"caFile": s.servers.File, "certFile": own.CertFile, "keyFile": own.KeyFile},
	}
}

// marked is the same for a scheduler whose pods the chart's policy marks.
func marked(extender map[string]any) map[string]any {
	extender["managedResources"] = []any{map[string]any{"name": "berth.dev/volumes", "ignoredByScheduler": true}}
	return extender
}

// startStock starts kube-scheduler as it comes with Kubernetes.
func (c *cluster) startStock(t *testing.T, name string, extenders ...any) *controlplane.Process {
	t.Helper()
	text, err := sigsyaml.Marshal(map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"profiles": []any{map[string]any{"schedulerName": name}}, "extenders": extenders,
	})
	if err != nil {
		t.Fatal(err)
	}
	path, err := controlplane.Connect(t.TempDir(), string(text), c.programs.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.programs.StockScheduler(path, "--secure-port=0")
	return run(t, p, err)
}

// by gives pods to a scheduler.
func by(scheduler string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.SchedulerName = scheduler }
}

// all makes several changes to a pod.
func all(changes ...func(*corev1.Pod)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for _, change := range changes {
			change(pod)
		}
	}
}

// loopback listens for one controller, or on the address of one that has ended.
func loopback(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.WithoutCancel(t.Context()), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// rewrite changes a scheduler's configuration in its file.
func rewrite(t *testing.T, path string, change func(map[string]any)) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := sigsyaml.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	change(content)
	if text, err = sigsyaml.Marshal(content); err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(changed, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return changed
}
