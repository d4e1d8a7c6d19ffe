//go:build lab

package test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testServices runs a StatefulSet with a pod on each of two nodes. So a client on one of them
// reaches a pod of its own node, whose answers pass no router, and one of the other.
func testServices(t *testing.T, l *lab) {
	manifest := filepath.Join("testdata", "services.yaml")
	l.kubectl("apply", "-f", manifest)
	l.kubectl("rollout", "status", "statefulset/db", "--timeout=180s")
	l.kubectl("wait", "--for=condition=Ready", "--timeout=180s", "pod/client")
	nodes := strings.Fields(l.kubectl("get", "pods", "-l", "app=db", "-o", "jsonpath={.items[*].spec.nodeName}"))
	slices.Sort(nodes)
	if !slices.Equal(nodes, []string{"node1", "node2"}) {
		t.Fatalf("the pods are on %v, want one on each node", nodes)
	}
	for _, c := range []struct{ what, from, to, want string }{
		{"a pod by its name in a headless Service", "client", "db-0.db:8080", "db-0"},
		{"another by its full name", "client", "db-1.db.default.svc.cluster.local:8080", "db-1"},
		{"a Service of a pod on the node or off it", "client", "first", "db-0"},
		{"a Service of the other pod", "client", "second.default.svc", "db-1"},
		{"a Service with the pod itself", "db-0", "first", "db-0"},
		{"a Service by name across nodes", "db-0", "second", "db-1"},
	} {
		var got string
		l.eventually(c.what+" answers", func() bool {
			got = l.fetch(c.from, "http://"+c.to+"/")
			return got != ""
		})
		if got != c.want {
			t.Errorf("%s: %s says %q, want %q", c.what, c.to, got, c.want)
		}
	}
	if got := l.fetch("client", "http://nobody.db:8080/"); got != "" {
		t.Errorf("a name that does not exist says %q", got)
	}
	l.kubectl("exec", "client", "--", "nc", "-w", "10", "kubernetes.default", "443", "-e", "true")
	l.kubectl("delete", "-f", manifest, "--grace-period=1", "--timeout=120s")
}

// fetch returns what a page says to a pod; nothing if the pod cannot fetch it.
func (l *lab) fetch(pod, page string) string {
	l.t.Helper()
	out, err := l.kubectlCommand("exec", pod, "--", "wget", "-qO-", page).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
