package replica

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// node is node n1 with one pool of 10 GiB and a worker, which can be restarted.
type node struct {
	*server
	given
	disks     *memory.Disks
	disturb   memory.Disturbance
	worker    *Worker
	formatted []provision.FormatRequest
	refused   int
	mounted   []string // where the volume is mounted
}

func newNode(vs ...*v1alpha1.Volume) *node {
	n := &node{server: newServer(vs...), disks: memory.NewDisks(memory.PoolConfig{PoolRef: vg0, Total: 10 * gib})}
	n.restart()
	return n
}

// given is the decision of the cluster about an orphan.
type given struct {
	about   orphan.Record
	word    orphan.Answer
	wordErr error
	// waived is the data that an administrator has given up.
	waived    orphan.Lost
	waivedErr error
}

// restart forgets everything that is in the process's memory.
func (n *node) restart() {
	n.worker = &Worker{
		Base:    n.base(),
		Objects: n.server, Provisioner: memory.New(n.disks, n.disturb),
		Mounts: func(provision.Volume) ([]string, error) { return n.mounted, nil },
	}
}

func (n *node) base() worker.Base {
	return worker.Base{
		Node: here, Locks: &keyed.Locks[string]{},
		Refused:    func() { n.refused++ },
		ToolFailed: func() {},
		Format:     func(r provision.FormatRequest) { n.formatted = append(n.formatted, r) },
		Listed:     func(string) bool { return n.has() },
		Deleted:    func(string) {},
		Pool:       func(ref provision.PoolRef) provision.Pool { return provision.Pool{PoolRef: ref} },
		Reported: func(pool string) (bool, error) {
			all, err := memory.New(n.disks, nil).Report(context.Background()) //nolint:forbidigo // the caller passes no context
			return slices.ContainsFunc(all, func(p provision.Pool) bool { return p.Name == pool }), err
		},
		Waived:  func(_ context.Context, l orphan.Lost) (bool, error) { return n.waived == l, n.waivedErr },
		Orphans: &orphans.Set{},
		Word: func(_ context.Context, r orphan.Record) (orphan.Answer, error) {
			n.about = r
			return n.word, n.wordErr
		},
	}
}

// step lets the watch catch up and runs one reconciliation.
func (n *node) step(ctx context.Context) (reconcile.Result, error) {
	n.sync()
	return n.stepStale(ctx)
}

// stepStale runs one reconciliation on the state that the watch showed before.
func (n *node) stepStale(ctx context.Context) (reconcile.Result, error) {
	return n.worker.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: id}})
}

// settle steps until nothing is left to do.
func (n *node) settle(t *testing.T) {
	t.Helper()
	for range 10 {
		if result, err := n.step(t.Context()); err == nil && result.IsZero() {
			return
		}
	}
	t.Fatal("the volume does not settle in 10 steps")
}

// carve makes the volume without the worker, as an earlier run would have.
func (n *node) carve(t *testing.T, fs string) {
	t.Helper()
	p := memory.New(n.disks, nil)
	if _, err := p.Create(t.Context(), provision.CreateRequest{ID: id, Pool: vg0, Size: gib}); err != nil {
		t.Fatal(err)
	}
	if fs == "" {
		return
	}
	if _, err := p.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: fs}); err != nil {
		t.Fatal(err)
	}
}

// has says whether the data is there.
func (n *node) has() bool {
	_, ok := n.disks.Device("/dev/vg0/" + id)
	return ok
}

// entry is this node's entry of the live volume.
func (n *node) entry(t *testing.T) *v1alpha1.ReplicaStatus {
	t.Helper()
	v := n.get()
	if v == nil {
		t.Fatal("the Volume is gone")
	}
	return v.Entry(here)
}
