package snapshot

import (
	"context"
	"errors"
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

// node is node n1 with one pool of 10 GiB that holds the volume, and a worker, which
// can be restarted.
type node struct {
	*server
	given
	t       *testing.T
	disks   *memory.Disks
	disturb memory.Disturbance
	worker  *Worker
	locks   *keyed.Locks[string]
	refused int
}

func newNode(t *testing.T, s *v1alpha1.Snapshot) *node {
	t.Helper()
	n := &node{server: newServer(s), t: t, disks: memory.NewDisks(memory.PoolConfig{PoolRef: vg0, Total: 10 * gib})}
	if _, err := n.plain().Create(t.Context(), provision.CreateRequest{ID: volume, Pool: vg0, Size: gib}); err != nil {
		t.Fatal(err)
	}
	n.restart()
	return n
}

// plain is the provisioner without any disturbance.
func (n *node) plain() *memory.Provisioner { return memory.New(n.disks, nil) }

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
	n.locks = &keyed.Locks[string]{}
	n.worker = &Worker{Base: n.base(), Objects: n.server, Provisioner: memory.New(n.disks, n.disturb)}
}

func (n *node) base() worker.Base {
	return worker.Base{
		Node: here, Locks: n.locks,
		Refused:    func() { n.refused++ },
		ToolFailed: func() {},
		Listed:     func(string) bool { return n.has() },
		Deleted:    func(string) {},
		Pool:       func(ref provision.PoolRef) provision.Pool { return provision.Pool{PoolRef: ref} },
		Reported: func(pool string) (bool, error) {
			all, err := n.plain().Report(n.t.Context())
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

// take takes the snapshot without the worker, as an earlier run would have.
func (n *node) take() {
	n.t.Helper()
	if _, err := n.plain().Snapshot(n.t.Context(), provision.SnapshotRequest{ID: id, Volume: volume}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) lose() {
	n.t.Helper()
	if err := n.plain().DeleteSnapshot(n.t.Context(), id); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) loseVolume() {
	n.t.Helper()
	if err := n.plain().Delete(n.t.Context(), volume); err != nil {
		n.t.Fatal(err)
	}
}

// has says whether the snapshot is there.
func (n *node) has() bool {
	_, err := n.plain().GetSnapshot(n.t.Context(), id)
	return !errors.Is(err, provision.ErrNotFound)
}

// step lets the watch catch up and runs one reconciliation.
func (n *node) step() (reconcile.Result, error) {
	n.sync()
	return n.stepStale()
}

// stepStale runs one reconciliation on the state that the watch showed before.
func (n *node) stepStale() (reconcile.Result, error) {
	return n.worker.Reconcile(n.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: id}})
}

// settle steps until nothing is left to do.
func (n *node) settle() {
	n.t.Helper()
	for range 10 {
		if result, err := n.step(); err == nil && result.IsZero() {
			return
		}
	}
	n.t.Fatal("the snapshot does not settle in 10 steps")
}

func (n *node) expect(state v1alpha1.SnapshotState, reason string) {
	n.t.Helper()
	if e := n.live.Entry(here); !sameState(e, state, reason) {
		n.t.Errorf("entry %+v; want %s, %s", e, state, reason)
	}
}
