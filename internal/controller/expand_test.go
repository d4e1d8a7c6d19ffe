package controller_test

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
)

func TestExpandReturnsTheNewSize(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))

	for range 2 { // a repeated call is no error
		got, err := p.Volumes.Expand(within(t), v.ID, volumes.Size{Required: 2*gi + 1})
		if err != nil {
			t.Fatal(err)
		}
		if got.Capacity != 2*gi+4*mi || n.Held(v.ID) != got.Capacity {
			t.Errorf("got %d, the node holds %d", got.Capacity, n.Held(v.ID))
		}
	}
}

func TestASmallerSizeThanThePresentOneIsMetAlready(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))

	got, err := p.Volumes.Expand(within(t), v.ID, volumes.Size{Required: 512 * mi})

	if err != nil || got.Capacity != gi {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAnExpansionWithoutRoomIsFinalAndASmallerOneWorks(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 4*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))

	_, err := p.Volumes.Expand(within(t), v.ID, volumes.Size{Required: 8 * gi})
	wantError(t, err, volumes.ErrOutOfRange, "node "+n.Name+": pool vg0/thin has 3Gi free, 7Gi more asked")
	if got, err := p.Volumes.Get(within(t), v.ID); err != nil || got.Capacity != gi {
		t.Errorf("after the refusal: %+v, %v", got, err)
	}

	got, err := p.Volumes.Expand(within(t), v.ID, volumes.Size{Required: 2 * gi})
	if err != nil || got.Capacity != 2*gi {
		t.Errorf("a smaller wish: %+v, %v", got, err)
	}
}

func TestARefusedWishCanBeTakenBackWhole(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 4*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))
	_, err := p.Volumes.Expand(within(t), v.ID, volumes.Size{Required: 8 * gi})
	wantError(t, err, volumes.ErrOutOfRange)

	got, err := p.Volumes.Expand(within(t), v.ID, volumes.Size{Required: gi})
	if err != nil || got.Capacity != gi {
		t.Fatalf("got %+v, %v", got, err)
	}
	if spec := controllertest.Volume(t, c.Environment, v.ID).Spec.Capacity; spec.Value() != gi {
		t.Errorf("spec.capacity is %s: the refused wish is still there", spec.String())
	}
}

func TestAnImpossibleExpansionIsRefused(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 4*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))
	tests := map[string]struct {
		id    string
		size  volumes.Size
		class error
	}{
		"an unknown volume":               {"pvc-00000000-0000-0000-0000-000000000000", volumes.Size{Required: gi}, provision.ErrNotFound},
		"a foreign id":                    {"../x", volumes.Size{Required: gi}, provision.ErrNotFound},
		"a negative size":                 {v.ID, volumes.Size{Required: -1}, provision.ErrInvalid},
		"an absurd size":                  {v.ID, volumes.Size{Required: volumes.MaxSize + 1}, volumes.ErrOutOfRange},
		"a limit below the capacity":      {v.ID, volumes.Size{Required: 64 * mi, Limit: 512 * mi}, volumes.ErrOutOfRange},
		"a limit below the required size": {v.ID, volumes.Size{Required: 2 * gi, Limit: gi}, provision.ErrInvalid},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := p.Volumes.Expand(within(t), test.id, test.size)
			wantError(t, err, test.class)
		})
	}
}

func TestExpandingOnANodeThatIsAwaySaysSo(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 4*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))
	n.SetMute(v.ID, true)
	n.SetReady(t, false)
	await(t, "the controller to see that the node is away", func() bool {
		room, err := p.Volumes.Capacity(within(t), c.class, nil)
		return err == nil && room.Total == 0
	})

	_, err := p.Volumes.Expand(within(t), v.ID, volumes.Size{Required: 2 * gi})
	wantError(t, err, provision.ErrUnavailable, "node "+n.Name+": the Node is not ready")

	n.SetMute(v.ID, false)
	n.SetReady(t, true)
	controllertest.Eventually(t, c.Environment, v.ID, func(*v1alpha1.Volume) error {
		_, err := p.Volumes.Expand(within(t), v.ID, volumes.Size{Required: 2 * gi})
		return err
	})
}
