package inline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/keyed"
)

func sweep(ctx context.Context, n *node) error { return n.Sweep(ctx, n.Pools()) }

// podGoes has the kubelet and the API server forget the pod, so that a sweep removes the volume.
func podGoes(n *node) {
	n.reboot()
	n.kubeletForgets()
	n.here.Delete(uid)
}

func TestASecondCallForAVolumeIsRefusedAtOnce(t *testing.T) {
	for what, call := range map[string]func(ctx context.Context, n *node) error{"publish": publish, "unpublish": unpublish} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t)
			n.publish()
			end, err := n.begin(t.Context(), volume{id, owner})
			if err != nil {
				t.Fatal(err)
			}
			if err := call(t.Context(), n); !errors.Is(err, keyed.ErrLocked) {
				t.Errorf("error %v; want %v", err, keyed.ErrLocked)
			}
			if !n.mounted() {
				t.Error("the volume was unmounted in the middle of another call")
			}
			end()
			if err := call(t.Context(), n); err != nil {
				t.Error(err)
			}
		})
	}
}

// begun are calls, each with a node on which the call has an effect.
var begun = map[string]struct {
	prepare func(n *node)
	call    func(ctx context.Context, n *node) error
	done    func(n *node) bool
}{
	"publish":   {func(*node) {}, publish, (*node).mounted},
	"unpublish": {(*node).publish, unpublish, func(n *node) bool { return n.left() == nothing }},
	"sweep":     {func(n *node) { n.publish(); podGoes(n) }, sweep, func(n *node) bool { return n.left() == nothing }},
}

func TestACallWaitsForAnotherOperationOnItsVolume(t *testing.T) {
	for what, test := range begun {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				test.prepare(n)
				unlock, err := n.locks.Lock(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				before := n.left()
				answer := make(chan error, 1)
				go func() { answer <- test.call(t.Context(), n) }()
				synctest.Wait()
				if len(answer) > 0 || n.left() != before {
					t.Error("it did not wait")
				}
				unlock()
				if err := <-answer; err != nil || !test.done(n) {
					t.Errorf("left on the node: %s, %v", n.left(), err)
				}
			})
		})
	}
}

func TestAWaitingCallEndsWithItsCaller(t *testing.T) {
	for what, test := range begun {
		t.Run(what, func(t *testing.T) {
			n := newNode(t)
			test.prepare(n)
			unlock, err := n.locks.Lock(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			before := n.left()
			if err := test.call(ctx, n); !errors.Is(err, context.Canceled) || n.left() != before {
				t.Errorf("left on the node: %s, error %v; want %v", n.left(), err, context.Canceled)
			}
			unlock()
			n.clock.SetTime(n.clock.Now().Add(askInterval))
			if err := test.call(t.Context(), n); err != nil || !test.done(n) {
				t.Errorf("then left on the node: %s, %v", n.left(), err)
			}
		})
	}
}
