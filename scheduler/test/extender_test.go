package test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"berth.dev/berth/internal/controller/controllertest"
)

// The published capacity never shrinks here: without the extender every pod would
// be sent to the node.
func TestAStockSchedulerThatAsksTheExtenderSendsNoPodInVain(t *testing.T) {
	for _, claims := range []int{1, 3} {
		t.Run(fmt.Sprintf("with %d claims each", claims), func(t *testing.T) {
			at, tls := loopback(t, "127.0.0.1:0"), newSecure(t)
			c := withoutScheduler(t, tls.at(t, at))
			n := c.node(t, "a", 10*gi)
			c.publish(t, n, 10*gi)
			c.startStock(t, "marked", marked(tls.asks(t, at.Addr())))
			c.installMarker(t, "marked")
			c.burst(t, 5, all(by("marked"), c.withClaims(t, claims, 3*gi/int64(claims))))
			_, waiting := c.settle(t, 3)
			wantReason(t, waiting, "Berth: ")
			c.wantHeld(t, 3*claims, 9*gi, n)
			c.wantVolumes(t, 3*claims)
			c.wantNoFailures(t, n)
			c.wantNothingLeft(t, n)
		})
	}
}

// An inline volume is made when no scheduler can choose any more, and no Volume
// tells of it: the extender must count the pod. The scheduler may ask about a waiting
// pod before the controller has seen that another has ended. The capacity that the
// node then publishes wakes the waiting pod once more.
func TestAStockSchedulerThatAsksTheExtenderCountsInlineVolumes(t *testing.T) {
	at, tls := loopback(t, "127.0.0.1:0"), newSecure(t)
	c := withoutScheduler(t, tls.at(t, at))
	n := c.node(t, "a", 10*gi)
	c.publishAlways(t, n)
	c.startStock(t, "asking", tls.asks(t, at.Addr()))
	c.burst(t, 5, all(by("asking"), c.withInline(3*gi)))
	bound, waiting := c.settle(t, 3)
	wantReason(t, waiting, "Berth: ")
	c.wantRoom(t, n, 1*gi)
	c.end(t, bound[0].Name)
	c.settle(t, 3)
	c.clean(t)
	c.wantRoom(t, n, 10*gi)
}

func TestAStockSchedulerGoesOnWhileTheControllerIsAway(t *testing.T) {
	at, tls := loopback(t, "127.0.0.1:0"), newSecure(t)
	c := withoutScheduler(t, tls.at(t, at))
	n := c.node(t, "a", 10*gi)
	c.publishAlways(t, n)
	c.startStock(t, "asking", tls.asks(t, at.Addr()))
	c.burst(t, 5, all(by("asking"), c.withClaims(t, 1, 3*gi)))
	await(t, "a first Volume", func(ctx context.Context) (bool, error) {
		list, err := c.listVolumes(ctx)
		return len(list) > 0, err
	})
	c.stopController(t)
	c.create(t, c.pod("plain", by("asking")))
	c.awaitBound(t, "plain")
	c.startController(t, tls.at(t, loopback(t, at.Addr().String())))
	c.settle(t, 3+1)
	c.wantHeld(t, 3, 9*gi, n)
	c.wantNothingLeft(t, n)
}

// The Service reaches every controller. One that does not lead answers 503, and the
// scheduler decides by the published capacity; once it leads it answers.
func TestAStockSchedulerGoesOnWithoutAControllerThatDoesNotLead(t *testing.T) {
	at, tls := loopback(t, "127.0.0.1:0"), newSecure(t)
	c := withoutScheduler(t, controllertest.WithLeaderElection())
	n := c.node(t, "a", 10*gi)
	c.publish(t, n, 10*gi) // and never less: only the node and the extender know
	leader := *c
	c.startController(t, tls.at(t, at), controllertest.WithLeaderElection())
	c.startStock(t, "asking", tls.asks(t, at.Addr()))
	c.burst(t, 5, all(by("asking"), c.withClaims(t, 1, 3*gi)))
	c.settle(t, 3)
	if len(c.provisioningFailures(t)) == 0 {
		t.Error("nobody was sent in vain, so the extender was not passed over")
	}

	leader.stopController(t)
	agree(t, func(ctx context.Context) error {
		_, waiting, err := c.pods(ctx)
		for _, pod := range waiting {
			if message := refused(&pod); !strings.Contains(message, "Berth: ") {
				return fmt.Errorf("pod %s waits with %q", pod.Name, message)
			}
		}
		return err
	})
	c.settle(t, 3)
	c.wantHeld(t, 3, 9*gi, n)
	c.wantNothingLeft(t, n)
}
