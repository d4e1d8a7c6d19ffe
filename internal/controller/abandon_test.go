package controller_test

import (
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
)

func TestAReservationThatIsAbandonedLeavesItsRoom(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)
	r.Reservation, r.Pool = true, controllertest.Pool
	made := mustCreate(t, p, r)
	if err := p.Volumes.Abandon(within(t), r.Name); err != nil {
		t.Fatal(err)
	}
	await(t, "the room", func() bool { return n.Held(made.ID) == 0 && p.Book.Room(n.Name, c.class).Largest == 10*gi })

	again := mustCreate(t, p, r) // the pod is tried again, and fits now
	controllertest.Eventually(t, c.Environment, again.ID, placedOn(n))
	if again.ID != made.ID || n.Held(again.ID) != gi {
		t.Errorf("another volume was made, or none: %+v", again)
	}
}

func TestAVolumeThatMayHaveDataIsNotAbandoned(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)
	made := mustCreate(t, p, r)
	for _, name := range []string{r.Name, "pvc-that-does-not-exist"} {
		if err := p.Volumes.Abandon(within(t), name); err != nil {
			t.Fatal(err)
		}
	}
	controllertest.Eventually(t, c.Environment, made.ID, func(v *v1alpha1.Volume) error {
		if n.Held(made.ID) != gi {
			return errors.New("its room was given away")
		}
		return placedOn(n)(v)
	})
}
