package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
)

func TestCreateReturnsTheSizeAndNodeOfTheCarvedVolume(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.requestFor(c.claim(t), n)
	r.Size.Required = gi + 1

	got := mustCreate(t, p, r)

	if got.ID != r.Name || got.Capacity != gi+4*mi || len(got.Nodes) != 1 || got.Nodes[0] != n.Name {
		t.Errorf("got %+v", got)
	}
	v := controllertest.Volume(t, c.Environment, got.ID)
	if err := onlyOn(n)(v); err != nil {
		t.Error(err)
	}
	if want := strings.TrimPrefix(r.Name, "pvc-"); v.Spec.ClaimRef == nil || string(v.Spec.ClaimRef.UID) != want {
		t.Errorf("claimRef is %+v, want uid %s", v.Spec.ClaimRef, want)
	}
	mustDelete(t, p, got.ID)
}

func TestCreateAgainReturnsTheSameVolume(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)

	first, second := mustCreate(t, p, r), mustCreate(t, p, r)

	if first.ID != second.ID || first.Capacity != second.Capacity {
		t.Errorf("%+v and %+v differ", first, second)
	}
}

func TestTheSameNameWithOtherParametersIsAConflict(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.requestFor(c.claim(t), n)
	mustCreate(t, p, r)
	tests := map[string]struct {
		change func(*volumes.Request)
		told   string
	}{
		"a larger size":          {func(r *volumes.Request) { r.Size.Required = 2 * gi }, "its size is 1Gi, less than the required 2Gi"},
		"a smaller limit":        {func(r *volumes.Request) { r.Size = volumes.Size{Required: 64 * mi, Limit: 512 * mi} }, "more than the limit of 512Mi"},
		"a different filesystem": {func(r *volumes.Request) { r.FSType = v1alpha1.XFS }, "its filesystem is ext4, not xfs"},
		"options of mkfs":        {func(r *volumes.Request) { r.MkfsOptions = "-I 512" }, `the options "", not with "-I 512"`},
		"a different volumeMode": {func(r *volumes.Request) { r.Mode, r.FSType = v1alpha1.Block, "" }, "its volumeMode is Filesystem, not Block"},
		"a different PoolClass":  {func(r *volumes.Request) { r.PoolClass = "other" }, "its PoolClass is " + c.class},
		"a different claim":      {func(r *volumes.Request) { r.Claim = &v1alpha1.ClaimReference{Namespace: "x", Name: "y"} }, "belongs to claim default/" + c.class},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed := r
			test.change(&changed)
			_, err := p.Volumes.Create(within(t), changed)
			wantError(t, err, provision.ErrConflict, test.told)
		})
	}
}

func TestASecondCallForOneVolumeIsBusyAndTheFirstGoesOn(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)
	n.SetMute(r.Name, true)
	first := make(chan error, 1)
	go func() {
		_, err := p.Volumes.Create(within(t), r)
		first <- err
	}()
	controllertest.Eventually(t, c.Environment, r.Name, placedOn(n))

	_, err := p.Volumes.Create(within(t), r)
	wantError(t, err, volumes.ErrBusy)
	wantError(t, p.Volumes.Delete(within(t), r.Name), volumes.ErrBusy)

	n.SetMute(r.Name, false)
	if err := <-first; err != nil {
		t.Errorf("the first call failed: %v", err)
	}
}

func TestACancelledCallLeavesAtOnceAndTheNextOneGoesOn(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	r := c.request(n)
	written, told := making(r.Name)
	p := controllertest.Start(t, c.Environment, told)
	n.SetMute(r.Name, true)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := p.Volumes.Create(ctx, r)
		first <- err
	}()
	select {
	case <-written:
	case err := <-first:
		t.Fatalf("the first call has ended: %v", err)
	}
	controllertest.Eventually(t, c.Environment, r.Name, placedOn(n))

	cancel()
	wantError(t, <-first, context.Canceled, "waiting for node "+n.Name)

	n.SetMute(r.Name, false)
	mustCreate(t, p, r)
}

func TestAFullNodeIsRefusedAndTheNextNodeWorks(t *testing.T) {
	c := newCluster(t)
	full, roomy := c.node(t, "full", 10*gi), c.node(t, "roomy", 10*gi)
	full.SetTotal(512 * mi) // less than it reports
	p := controllertest.Start(t, c.Environment)
	r := c.request(full)

	_, err := p.Volumes.Create(within(t), r)
	wantError(t, err, volumes.ErrUnplaceable, "node "+full.Name+": pool vg0/thin has 512Mi free, 1Gi asked")
	controllertest.Eventually(t, c.Environment, r.Name, func(v *v1alpha1.Volume) error {
		if v == nil || len(v.Spec.Replicas) > 0 || len(v.Status.Replicas) > 0 || len(v.Labels) > 0 {
			return fmt.Errorf("the volume is still on a node: %+v", v)
		}
		return nil
	})

	got := mustCreate(t, p, on(r, roomy))
	if got.Nodes[0] != roomy.Name || full.Held(got.ID) != 0 {
		t.Errorf("got %+v, and the full node holds %d", got, full.Held(got.ID))
	}
	controllertest.Eventually(t, c.Environment, r.Name, onlyOn(roomy))
}

func TestANodeThatRefusedMayBeAskedAgainWhenItHasRoom(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	n.SetTotal(512 * mi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)
	_, err := p.Volumes.Create(within(t), r)
	wantError(t, err, volumes.ErrUnplaceable)

	n.SetTotal(10 * gi)
	mustCreate(t, p, r)
}

func TestWithoutATopologyTheNextNodeIsTriedInTheSameCall(t *testing.T) {
	c := newCluster(t)
	liar, honest := c.node(t, "liar", 20*gi), c.node(t, "honest", 10*gi)
	liar.SetTotal(0)
	p := controllertest.Start(t, c.Environment)

	got := mustCreate(t, p, c.request())

	if got.Nodes[0] != honest.Name {
		t.Errorf("placed on %v", got.Nodes)
	}
	controllertest.Eventually(t, c.Environment, got.ID, onlyOn(honest))
}

func TestWithoutATopologyAllRefusalsAreTold(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, "a", 20*gi), c.node(t, "b", 10*gi)
	a.SetTotal(0)
	b.SetFailure(v1alpha1.ReasonPoolMissing, "thin pool vg0/thin not found")
	p := controllertest.Start(t, c.Environment)

	_, err := p.Volumes.Create(within(t), c.request())

	wantError(t, err, volumes.ErrUnplaceable, "node "+a.Name+": pool vg0/thin has 0 free", "node "+b.Name+": thin pool vg0/thin not found")
}

func TestANodeThatReportsTooLittleIsNotAsked(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 512*mi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)

	_, err := p.Volumes.Create(within(t), r)

	wantError(t, err, volumes.ErrUnplaceable, "512Mi free, 1Gi asked")
	if v := controllertest.Volume(t, c.Environment, r.Name); v != nil {
		t.Errorf("a Volume was made: %+v", v.Spec)
	}
}

func TestFailuresOfTheNodeAreTold(t *testing.T) {
	tests := map[string]struct {
		reason string
		class  error
	}{
		"a provisioner that fails is transient":           {v1alpha1.ReasonProvisionerError, provision.ErrUnavailable},
		"a wish that cannot be met is final":              {v1alpha1.ReasonInvalid, provision.ErrInvalid},
		"other data of the same name is a conflict":       {v1alpha1.ReasonConflict, provision.ErrConflict},
		"a missing pool sends the volume to another node": {v1alpha1.ReasonPoolMissing, volumes.ErrUnplaceable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			n := c.node(t, "n", 10*gi)
			n.SetFailure(test.reason, "node "+n.Name+": the reason why")
			p := controllertest.Start(t, c.Environment)
			r := c.request(n)

			_, err := p.Volumes.Create(within(t), r)
			wantError(t, err, test.class, "node "+n.Name+": the reason why")
			if strings.Count(err.Error(), n.Name) != 1 {
				t.Errorf("the node is named more than once: %v", err)
			}

			n.SetFailure("", "")
			controllertest.Eventually(t, c.Environment, r.Name, func(*v1alpha1.Volume) error {
				_, err := p.Volumes.Create(within(t), r)
				return err
			})
		})
	}
}

func TestAClaimDoesNotStayWithANodeThatFailsAgainAndAgain(t *testing.T) {
	for name, elsewhere := range map[string]bool{"the request allows another node": true, "the request allows no other node": false} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			broken, healthy := c.node(t, "broken", 20*gi), c.node(t, "healthy", 10*gi)
			broken.SetFailure(v1alpha1.ReasonProvisionerError, "node "+broken.Name+": vgs does not answer")
			p := controllertest.Start(t, c.Environment)
			r := c.request(broken)
			if elsewhere {
				r = c.request(broken, healthy)
			}
			_, err := p.Volumes.Create(within(t), r)
			wantError(t, err, provision.ErrUnavailable, "vgs does not answer")

			got, err := p.Volumes.Create(within(t), r)
			if !elsewhere {
				wantError(t, err, volumes.ErrUnplaceable, "vgs does not answer")
				controllertest.Eventually(t, c.Environment, r.Name, func(v *v1alpha1.Volume) error {
					if len(v.Spec.Replicas)+len(v.Status.Replicas) > 0 {
						return fmt.Errorf("it is wanted on %v, entries %v", v.Spec.Replicas, v.Status.Replicas)
					}
					return nil
				})
				return
			}
			if err != nil || got.Nodes[0] != healthy.Name {
				t.Errorf("it is on %v, %v", got.Nodes, err)
			}
		})
	}
}

func TestAVolumeFollowsTheSchedulerUntilItHasAPersistentVolume(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, "a", 10*gi), c.node(t, "b", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(a)
	mustCreate(t, p, r)

	moved := mustCreate(t, p, on(r, b))
	if moved.Nodes[0] != b.Name {
		t.Fatalf("moved to %v", moved.Nodes)
	}
	controllertest.Eventually(t, c.Environment, r.Name, onlyOn(b))
	if a.Held(r.Name) != 0 {
		t.Error("the old node still holds it")
	}

	pv := persistentVolume(r.Name, r.Name)
	if err := c.Client.Create(t.Context(), pv); err != nil {
		t.Fatal(err)
	}
	_, err := p.Volumes.Create(within(t), on(r, a))
	wantError(t, err, provision.ErrConflict, "PersistentVolume "+r.Name)
	if err := placedOn(b)(controllertest.Volume(t, c.Environment, r.Name)); err != nil {
		t.Error(err)
	}
}

func TestANodeThatIsAwayIsGivenUpAndCleansUpWhenItIsBack(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, "a", 10*gi), c.node(t, "b", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(a)
	a.SetMute(r.Name, true)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := p.Volumes.Create(ctx, r)
		first <- err
	}()
	controllertest.Eventually(t, c.Environment, r.Name, placedOn(a))
	cancel()
	wantError(t, <-first, context.Canceled)
	a.SetReady(t, false)
	await(t, "the controller to see that the node is away", func() bool {
		room, err := p.Volumes.Capacity(within(t), c.class, []string{a.Name})
		return err == nil && room.Total == 0
	})
	_, err := p.Volumes.Create(within(t), r)
	wantError(t, err, volumes.ErrUnplaceable)

	got := mustCreate(t, p, on(r, b))
	if got.Nodes[0] != b.Name {
		t.Fatalf("placed on %v", got.Nodes)
	}
	v := controllertest.Volume(t, c.Environment, r.Name)
	if _, kept := v.Labels[v1alpha1.ReplicaLabel(a.Name)]; !kept {
		t.Error("the label of the node that may have carved it was dropped while it is away")
	}
}

func TestAMissingPoolClassIsNamed(t *testing.T) {
	c := newCluster(t)
	p := controllertest.Start(t, c.Environment)
	r := c.request()
	r.PoolClass = "nowhere"
	_, err := p.Volumes.Create(within(t), r)
	wantError(t, err, provision.ErrInvalid, `PoolClass "nowhere" does not exist`)
}
