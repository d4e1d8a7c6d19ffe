package controllertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

// serveSnapshots takes and removes snapshots until the test ends. It polls all
// snapshots of the node: a script need not be quick.
func (n *Node) serveSnapshots(t testing.TB, config *rest.Config) {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: n.e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			if err := n.lookAtSnapshots(ctx, c); err != nil && ctx.Err() == nil {
				t.Errorf("agent of %s: %v", n.Name, err)
				return false, err
			}
			return false, nil
		})
	})
	t.Cleanup(func() { stop(); done.Wait() })
}

func (n *Node) lookAtSnapshots(ctx context.Context, c client.Client) error {
	var list v1alpha1.SnapshotList
	if err := c.List(ctx, &list, client.HasLabels{v1alpha1.ReplicaLabel(n.Name)}); err != nil {
		return fmt.Errorf("listing snapshots: %w", err)
	}
	for i := range list.Items {
		s := &list.Items[i]
		entry := n.snapshot(s)
		old := s.Entry(n.Name)
		if entry == nil || old != nil && string(old.State) == string(*entry.State) && old.Reason == *entry.Reason {
			continue
		}
		body := apply.Snapshot(s.Name).WithResourceVersion(s.ResourceVersion).WithStatus(apply.SnapshotStatus().WithReplicas(entry))
		err := c.Status().Apply(ctx, body, client.FieldOwner("agent-"+n.Name))
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("applying the entry of snapshot %s: %w", s.Name, err)
		}
	}
	return nil
}

// snapshot changes the pool as a snapshot's spec asks and returns the entry that the
// agent would report, or nil if it has nothing to say.
func (n *Node) snapshot(s *v1alpha1.Snapshot) *apply.SnapshotReplicaApplyConfiguration {
	n.mu.Lock()
	defer n.mu.Unlock()
	entry := apply.SnapshotReplica().WithNode(n.Name).WithPool(Pool)
	_, taken := n.taken[s.Name]
	failed := func(reason, message string) *apply.SnapshotReplicaApplyConfiguration {
		return entry.WithState(v1alpha1.SnapshotFailed).WithReason(reason).WithMessage("node " + n.Name + ": " + message)
	}
	held := n.held[s.Spec.Volume]
	switch {
	case n.mute[s.Name] || n.mute[s.Spec.Volume+"/snapshots"]:
		return nil
	case s.DeletionTimestamp != nil && n.busy[s.Name] && taken:
		return failed(v1alpha1.ReasonInUse, "a volume is being made from it")
	case s.DeletionTimestamp != nil:
		delete(n.taken, s.Name)
		return entry.WithState(v1alpha1.SnapshotGone).WithReason(v1alpha1.ReasonRemoved)
	case !taken && n.failure[0] != "":
		return failed(n.failure[0], n.failure[1])
	case !taken && held > n.free():
		return failed(v1alpha1.ReasonNoSpace, "there is no room")
	case !taken:
		n.taken[s.Name] = held
	}
	state := v1alpha1.SnapshotReady
	if n.copying[s.Name] {
		state = v1alpha1.SnapshotCopying
	}
	at := metav1.NewTime(time.Unix(1e9, 0))
	return entry.WithState(state).WithReason(v1alpha1.ReasonCarved).WithTaken(at).WithRestoreSize(amount(n.taken[s.Name]))
}

// Taken is the size of the node's copy of a snapshot, and whether it has one.
func (n *Node) Taken(snapshot string) (int64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	size, taken := n.taken[snapshot]
	return size, taken
}

// SetCopying sets whether a snapshot is taken but never finishes.
func (n *Node) SetCopying(snapshot string, on bool) { n.change(func() { n.copying[snapshot] = on }) }

// SetBusy sets whether a snapshot cannot be removed.
func (n *Node) SetBusy(snapshot string, on bool) { n.change(func() { n.busy[snapshot] = on }) }

// Snapshot reads a Snapshot, or returns nil.
func Snapshot(t testing.TB, e *apitest.Environment, id string) *v1alpha1.Snapshot {
	t.Helper()
	s, err := readSnapshot(t.Context(), e, id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readSnapshot(ctx context.Context, e *apitest.Environment, id string) (*v1alpha1.Snapshot, error) {
	s := &v1alpha1.Snapshot{}
	err := e.Client.Get(ctx, client.ObjectKey{Name: id}, s)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return s, err
}

// EventuallySnapshot waits until the check accepts a Snapshot, which is nil if there is none.
func EventuallySnapshot(t testing.TB, e *apitest.Environment, id string, check func(*v1alpha1.Snapshot) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		s, err := readSnapshot(ctx, e, id)
		if err != nil {
			return false, err
		}
		last = check(s)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("snapshot %s: %v", id, errors.Join(last, err))
	}
}
