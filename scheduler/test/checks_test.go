package test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/controller/controllertest"
)

// await waits until a condition is met, and fails with its name.
func await(t *testing.T, what string, met func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, met); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// awaitBound waits until a pod is bound.
func (b *bench) awaitBound(t *testing.T, name string) {
	t.Helper()
	await(t, "pod "+name+" to be bound", func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{}
		err := b.Client.Get(ctx, client.ObjectKey{Namespace: b.class, Name: name}, pod)
		return pod.Spec.NodeName != "", err
	})
}

// agree waits until a check returns no error, and fails with its last one.
func agree(t *testing.T, check func(context.Context) error) {
	t.Helper()
	var objection error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		objection = check(ctx)
		return objection == nil, nil
	})
	if err != nil {
		t.Fatal(objection)
	}
}

// wantReason: every pod that waits says why.
func wantReason(t *testing.T, waiting []corev1.Pod, reason string) {
	t.Helper()
	for _, pod := range waiting {
		if message := refused(&pod); !strings.Contains(message, reason) {
			t.Errorf("pod %s waits with %q, which does not say %q", pod.Name, message, reason)
		}
	}
}

// wantHeld: in the end so many Volumes hold so much on the nodes, no node holds
// more than it has, and the controller's ledger counts the same bytes.
func (c *cluster) wantHeld(t *testing.T, volumes int, bytes int64, nodes ...*controllertest.Node) {
	t.Helper()
	agree(t, func(ctx context.Context) error {
		list, err := c.listVolumes(ctx)
		if err != nil {
			return err
		}
		holding, sum := 0, int64(0)
		for _, n := range nodes {
			held := int64(0)
			for i := range list {
				if bytes := n.Held(list[i].Name); bytes > 0 {
					holding, held = holding+1, held+bytes
				}
			}
			total := c.totals[n.Name]
			if room := c.controller.Book.Room(n.Name, c.class).Largest; room != total-held || held > total {
				return fmt.Errorf("node %s holds %d of %d bytes, and the ledger has room for %d", n.Name, held, total, room)
			}
			sum += held
		}
		if holding != volumes || sum != bytes {
			return fmt.Errorf("%d Volumes hold %d GiB, want %d that hold %d", holding, sum/gi, volumes, bytes/gi)
		}
		return nil
	})
}

// wantRoom: in the end the controller's ledger has so much left on a node.
func (c *cluster) wantRoom(t *testing.T, n *controllertest.Node, bytes int64) {
	t.Helper()
	agree(t, func(context.Context) error {
		if room := c.controller.Book.Room(n.Name, c.class).Largest; room != bytes {
			return fmt.Errorf("the ledger has room for %d bytes on node %s, want %d", room, n.Name, bytes)
		}
		return nil
	})
}

// wantVolumes: in the end there are so many Volumes, and none is left over.
func (c *cluster) wantVolumes(t *testing.T, count int) {
	t.Helper()
	agree(t, func(ctx context.Context) error {
		list, err := c.listVolumes(ctx)
		if err == nil && len(list) != count {
			err = fmt.Errorf("there are %d Volumes, want %d", len(list), count)
		}
		return err
	})
}

// wantNoFailures: no volume was sent to a node without room for it.
func (c *cluster) wantNoFailures(t *testing.T, nodes ...*controllertest.Node) {
	t.Helper()
	if failures := c.provisioningFailures(t); len(failures) > 0 {
		t.Errorf("CreateVolume failed: %q", failures)
	}
	for _, n := range nodes {
		if refusals := n.Refusals(); refusals > 0 {
			t.Errorf("node %s was asked %d times for room it does not have", n.Name, refusals)
		}
	}
}

// wantNothingLeft: when the pods and claims go, so does everything.
func (c *cluster) wantNothingLeft(t *testing.T, nodes ...*controllertest.Node) {
	t.Helper()
	c.clean(t)
	c.wantVolumes(t, 0)
	c.wantHeld(t, 0, 0, nodes...)
}
