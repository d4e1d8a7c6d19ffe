package controller_test

import (
	"testing"

	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/usecase/volumes"
)

func TestAReservationIsPublishedByTheCallThatReturnsIt(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)
	r.Reservation, r.Pool = true, controllertest.Pool

	made := mustCreate(t, p, r)
	if v := controllertest.Volume(t, c.Environment, made.ID); !v.Reserved() {
		t.Error("what the scheduler made is not marked")
	}
	r.Reservation, r.Pool = false, ""
	if got := mustCreate(t, p, r); got.ID != made.ID {
		t.Errorf("another volume was made: %+v", got)
	}
	v := controllertest.Volume(t, c.Environment, made.ID)
	if v.Reserved() {
		t.Error("it is still marked")
	}
	if err := onlyOn(n)(v); err != nil {
		t.Error(err)
	}
}

func TestCallsSideBySideDoNotPromiseTheSameRoom(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, "a", 10*gi), c.node(t, "b", 10*gi)
	a.SetTotal(10 * gi)
	p := controllertest.Start(t, c.Environment)
	ended := make(chan error)
	const calls = 6 // of 3Gi each: three fit on each node
	for range calls {
		go func() {
			r := c.request(a, b)
			r.Size.Required = 3 * gi
			r.Topology.Preferred = r.Topology.Preferred[:1]
			_, err := p.Volumes.Create(within(t), r)
			ended <- err
		}()
	}
	for range calls {
		if err := <-ended; err != nil {
			t.Errorf("one call failed: %v", err)
		}
	}
	for _, n := range []*controllertest.Node{a, b} {
		if got := n.Refusals(); got != 0 {
			t.Errorf("node %s was asked for more than it had %d times", n.Name, got)
		}
	}
}

func TestAPoolThatWasAskedForIsTheOneThatIsTaken(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)
	r.Pool = "elsewhere"
	_, err := p.Volumes.Create(within(t), r)
	wantError(t, err, volumes.ErrUnplaceable, "node "+n.Name, "the volume belongs in another pool")
}
