package controllertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// serve runs the agent until the test ends.
func (n *Node) serve(t testing.TB, config *rest.Config) {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: n.e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if err := n.follow(ctx, c); err != nil && ctx.Err() == nil {
				t.Errorf("agent of %s: %v", n.Name, err)
				return
			}
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
}

// follow answers every event of one watch. A poke answers all volumes again.
func (n *Node) follow(ctx context.Context, c client.WithWatch) error {
	events, err := c.Watch(ctx, &v1alpha1.VolumeList{}, client.HasLabels{v1alpha1.ReplicaLabel(n.Name)})
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer events.Stop()
	known := map[string]*v1alpha1.Volume{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.poke:
			for _, v := range known {
				if err := n.answer(ctx, c, v); err != nil {
					return err
				}
			}
		case event, open := <-events.ResultChan():
			if !open {
				return nil
			}
			v, ok := event.Object.(*v1alpha1.Volume)
			if !ok {
				return fmt.Errorf("unexpected event %v: %v", event.Type, event.Object)
			}
			if event.Type == watch.Deleted {
				delete(known, v.Name)
				continue
			}
			known[v.Name] = v
			if err := n.answer(ctx, c, v); err != nil {
				return err
			}
		}
	}
}

// answer carries out the volume's spec and applies the entry if it is new. A conflict
// means that a newer event is on its way.
func (n *Node) answer(ctx context.Context, c client.Client, v *v1alpha1.Volume) error {
	next := n.carry(v)
	if next == nil || same(v.Entry(n.Name), next) {
		return nil
	}
	entry := apply.ReplicaStatus().WithNode(n.Name).WithPool(Pool).WithState(next.State).WithReady(next.Ready).WithReason(next.Reason)
	if next.Message != "" {
		entry = entry.WithMessage(next.Message)
	}
	if next.Capacity != nil {
		entry = entry.WithCapacity(*next.Capacity)
	}
	if next.Requested != nil {
		entry = entry.WithRequested(*next.Requested)
	}
	body := apply.Volume(v.Name).WithResourceVersion(v.ResourceVersion).WithStatus(apply.VolumeStatus().WithReplicas(entry))
	n.mu.Lock()
	n.answered[v.Name] = time.Now()
	n.mu.Unlock()
	err := c.Status().Apply(ctx, body, client.FieldOwner("agent-"+n.Name))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("applying the entry of volume %s: %w", v.Name, err)
	}
	return nil
}
