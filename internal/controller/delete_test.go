package controller_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/provision"
)

func TestDeleteReturnsWhenTheDataAndTheObjectAreGone(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))

	mustDelete(t, p, v.ID)

	if n.Held(v.ID) != 0 {
		t.Error("the node still holds it")
	}
	if err := controllertest.Gone(controllertest.Volume(t, c.Environment, v.ID)); err != nil {
		t.Error(err)
	}
	mustDelete(t, p, v.ID)
}

func TestDeletingAVolumeThatNeverExistedIsNoError(t *testing.T) {
	c := newCluster(t)
	p := controllertest.Start(t, c.Environment)
	for _, id := range []string{"pvc-00000000-0000-0000-0000-000000000000", "no such id", "../../etc/passwd"} {
		mustDelete(t, p, id)
	}
}

func TestADeviceInUseIsNotDeletedUntilItIsClosed(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))
	n.SetInUse(v.ID, true)

	wantError(t, p.Volumes.Delete(within(t), v.ID), provision.ErrInUse, "node "+n.Name+": the device is open")
	controllertest.Eventually(t, c.Environment, v.ID, notReadyFor(v1alpha1.ReasonInUse))

	n.SetInUse(v.ID, false)
	controllertest.Eventually(t, c.Environment, v.ID, controllertest.Gone)
	mustDelete(t, p, v.ID)
}

func TestANodeThatIsAwayDoesNotHoldUpADeletionAndStaysListed(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))
	n.SetMute(v.ID, true)
	n.SetReady(t, false)
	await(t, "the controller to see that the node is away", func() bool {
		room, err := p.Volumes.Capacity(within(t), c.class, nil)
		return err == nil && room.Total == 0
	})

	mustDelete(t, p, v.ID)

	controllertest.Eventually(t, c.Environment, v.ID, func(v *v1alpha1.Volume) error {
		if v == nil || v.DeletionTimestamp == nil || len(v.Status.Replicas) != 1 {
			return fmt.Errorf("it is not listed as being deleted: %+v", v)
		}
		return notReadyFor("NodeAway")(v)
	})
	if page, _, err := p.Volumes.List(within(t), "", 0); err != nil || contains(page, v.ID) {
		t.Errorf("a deleted volume is still offered: %v, %v", page, err)
	}

	n.SetReady(t, true)
	n.SetMute(v.ID, false)
	controllertest.Eventually(t, c.Environment, v.ID, controllertest.Gone)
	if n.Held(v.ID) != 0 {
		t.Error("the node still holds it")
	}
}

func TestAVolumeThatWasTakenOffEveryNodeGoesAtOnce(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	n.SetTotal(0)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)
	if _, err := p.Volumes.Create(within(t), r); err == nil {
		t.Fatal("created on a full node")
	}
	mustDelete(t, p, r.Name)
	controllertest.Eventually(t, c.Environment, r.Name, controllertest.Gone)
}

// notReadyFor checks the reason of a Ready condition that is False.
func notReadyFor(reason string) func(*v1alpha1.Volume) error {
	return func(v *v1alpha1.Volume) error {
		if v == nil {
			return errors.New("it does not exist")
		}
		c := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason || c.Message == "" {
			return fmt.Errorf("condition Ready is %+v, want False for %s", c, reason)
		}
		return nil
	}
}
