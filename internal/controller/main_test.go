package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/usecase/volumes"
)

func TestMain(m *testing.M) { apitest.Main(m) }

const (
	mi = controllertest.Mi
	gi = controllertest.Gi
)

// cluster is a test's own class and nodes on the shared API server.
type cluster struct {
	*apitest.Environment
	class string
}

// newCluster names the class after the test, so that no other test's nodes serve it.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{Environment: apitest.Start(t), class: prefix(t)}
	controllertest.NewClass(t, c.Environment, c.class)
	return c
}

var tests atomic.Int32

// prefix returns a unique, valid object name that tells which test an object belongs to.
func prefix(t testing.TB) string {
	words := strings.FieldsFunc(strings.ToLower(t.Name()), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	return fmt.Sprintf("t%d-%s", tests.Add(1), strings.Trim(name[max(0, len(name)-30):], "-"))
}

func (c *cluster) node(t testing.TB, suffix string, total int64) *controllertest.Node {
	t.Helper()
	return controllertest.NewNode(t, c.Environment, c.class+"-"+suffix, c.class, total)
}

// request asks for a 1Gi ext4 volume on the given nodes, as the provisioner does.
func (c *cluster) request(allowed ...*controllertest.Node) volumes.Request {
	r := volumes.Request{
		Name: "pvc-" + string(uuid.NewUUID()), Size: volumes.Size{Required: gi},
		Mode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: c.class,
	}
	return on(r, allowed...)
}

func on(r volumes.Request, allowed ...*controllertest.Node) volumes.Request {
	r.Topology = volumes.Topology{}
	for _, n := range allowed {
		r.Topology.Allowed = append(r.Topology.Allowed, n.Name)
	}
	r.Topology.Preferred = r.Topology.Allowed
	return r
}

// within bounds one call, as the sidecars do.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func mustCreate(t testing.TB, p *controllertest.Process, r volumes.Request) volumes.Volume {
	t.Helper()
	v, err := p.Volumes.Create(within(t), r)
	if err != nil {
		t.Fatalf("creating: %v", err)
	}
	return v
}

func mustDelete(t testing.TB, p *controllertest.Process, id string) {
	t.Helper()
	if err := p.Volumes.Delete(within(t), id); err != nil {
		t.Fatalf("deleting: %v", err)
	}
}

func wantError(t *testing.T, err, class error, parts ...string) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Fatalf("got %v, want an error of class %q", err, class)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

// placedOn checks that the spec names exactly one node and that its label is there.
func placedOn(n *controllertest.Node) func(*v1alpha1.Volume) error {
	return func(v *v1alpha1.Volume) error {
		if v == nil {
			return errors.New("it does not exist")
		}
		if len(v.Spec.Replicas) != 1 || v.Spec.Replicas[0].Node != n.Name {
			return fmt.Errorf("spec.replicas is %v, want node %s", v.Spec.Replicas, n.Name)
		}
		if _, ok := v.Labels[v1alpha1.ReplicaLabel(n.Name)]; !ok {
			return fmt.Errorf("the label of %s is missing: %v", n.Name, v.Labels)
		}
		return nil
	}
}

// onlyOn checks that no label or entry of any other node is left.
func onlyOn(n *controllertest.Node) func(*v1alpha1.Volume) error {
	return func(v *v1alpha1.Volume) error {
		if err := placedOn(n)(v); err != nil {
			return err
		}
		if len(v.Status.Replicas) != 1 || len(v.Labels) != 1 {
			return fmt.Errorf("other nodes are left: labels %v, entries %v", v.Labels, v.Status.Replicas)
		}
		return nil
	}
}
