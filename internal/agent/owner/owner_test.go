package owner_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/replicate/cert"
)

func TestAVolumeIsTakenAndGivenUpInTheOrderOfTheProtocol(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.take())
	// Epoch, promise, session, reservation, opened, Active, then the guard, and that pods may have it.
	if got, want := changing(c.effects), "Replace Store Register Reserve Store Replace OpenEpoch Store"; got != want {
		t.Errorf("taken by %s, want %s", got, want)
	}
	if c.phase() != "Active a" || a.device.Write("1") != nil {
		t.Errorf("the record says %s", c.phase())
	}
	must(t, a.give())
	// Closed, unmounted, flushed and kept, then the guard, and last the release.
	if got, want := changing(c.effects), "Store Flush Store CloseEpoch Replace"; got != want {
		t.Errorf("given up by %s, want %s", got, want)
	}
	if c.phase() != "Released a" || !c.current().Status.Ownership.Clean {
		t.Errorf("the record says %s, clean %v", c.phase(), c.current().Status.Ownership.Clean)
	}
}

func TestAnotherNodeWaitsForTheOwner(t *testing.T) {
	c := calm(t)
	a, b := c.machines[0], c.machines[1]
	must(t, a.take())
	err := b.take()
	is(t, err, provision.ErrUnavailable)
	now := new(owner.NotNowError)
	if !errors.As(err, &now) || now.Why.Reason != ownership.PrimaryElsewhere || b.device != nil {
		t.Fatalf("taken twice: %v", err)
	}
	must(t, a.give())
	select {
	case <-now.Changed():
		t.Error("the volume is awaited no more before this node knows of a change")
	default:
	}
	_, err = b.tended(t) // its record has changed
	must(t, err)
	select {
	case <-now.Changed():
	default:
		t.Error("a change was not told")
	}
	must(t, b.take())
	if err := b.device.Write("2"); err != nil {
		t.Error(err)
	}
}

// Each question to a node without power takes its whole time-out, and a pod waits meanwhile.
func TestCallsWaitOnceForANodeThatDoesNotAnswer(t *testing.T) {
	c := calm(t)
	a, b := c.machines[0], c.machines[1]
	b.slept = true
	must(t, a.take())
	if c.unanswered != 1 {
		t.Errorf("Take waited %d times for a node without power", c.unanswered)
	}
	c.unanswered = 0
	must(t, a.give())
	if c.unanswered != 0 { // it follows at once
		t.Errorf("Give waited %d times", c.unanswered)
	}
}

func TestANodeThatIsFencedClosesItsEpochsAndThenGivesItsWord(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.take())
	a.fenced = true
	broken := errors.New("a process hangs")
	c.stuck = broken
	is(t, a.does(func() error { return a.owner.Vouch(c.ctx) }), broken)
	if err := a.holds(); err == nil || !a.fenced {
		t.Errorf("a pod gets the volume of a node that is fenced: %v", err)
	}
	c.stuck = nil
	a.poked = false
	must(t, a.does(func() error { return a.owner.Vouch(c.ctx) }))
	if !a.poked {
		t.Error("nothing releases the volume: it is not tended after its epoch was closed")
	}
	if k := a.durable(); a.fenced || a.device != nil || !k.GaveUp(k.Opened) || !a.guarded.IsZero() {
		t.Errorf("fenced %v, mounted %v, kept %+v, guarded %v", a.fenced, a.device != nil, k, a.guarded)
	}
	must(t, a.take()) // a new epoch
	if c.phase() != "Active a" || a.epoch.Number != 3 {
		t.Errorf("the record says %s, mounted in epoch %v", c.phase(), a.epoch)
	}
}

func TestAPodEndsWhileTheAPIServerIsAwayAndTheReleaseWaits(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.take())
	c.down = true
	must(t, a.holds())
	is(t, a.give(), provision.ErrUnavailable)
	if k := a.durable(); a.device != nil || !k.GaveUp(k.Opened) {
		t.Errorf("mounted %v, kept %+v", a.device != nil, a.durable())
	}
	if err := a.holds(); err == nil {
		t.Error("a volume that was given up is given to a pod")
	}
	c.down = false
	must(t, a.give())
	if c.phase() != "Released a" || !c.current().Status.Ownership.Clean {
		t.Errorf("the record says %s", c.phase())
	}
}

func TestAVolumeThatAProcessOfAnotherNamespaceHasIsNotGivenUp(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.take())
	hidden, err := a.kernel.Open(a.epoch)
	must(t, err)
	is(t, a.give(), provision.ErrInUse)
	if c.phase() != "Active a" || a.durable().Taken.Boot != a.bootID() {
		t.Errorf("the record says %s, kept %+v", c.phase(), a.durable())
	}
	hidden.Close()
	must(t, a.give())
	if c.phase() != "Released a" {
		t.Errorf("the record says %s", c.phase())
	}
}

func TestAnEpochInWhichAPodStillWritesIsNotClosed(t *testing.T) {
	for mode, binds := range map[v1alpha1.VolumeMode]int{v1alpha1.Filesystem: 1, v1alpha1.Block: 1} {
		c := calm(t, func(v *v1alpha1.Volume) { v.Spec.VolumeMode = mode })
		a := c.machines[0]
		use := a.mounts()
		if mode == v1alpha1.Block {
			use = func(context.Context) error { return nil }
		}
		must(t, a.does(func() error { return a.owner.Take(c.ctx, theVolume, use) }))
		a.binds = []string{"/pod"}[:binds]
		is(t, a.give(), provision.ErrInUse)
		must(t, a.holds())
		if c.phase() != "Active a" {
			t.Errorf("%s: the record says %s", mode, c.phase())
		}
		a.binds = nil
		must(t, a.give())
	}
}

func TestARawBlockVolumeStaysTakenWhenTheAgentRestartsAndNotWhenTheMachineDoes(t *testing.T) {
	c := calm(t, func(v *v1alpha1.Volume) { v.Spec.VolumeMode = v1alpha1.Block })
	a := c.machines[0]
	must(t, a.does(func() error { return a.owner.Take(c.ctx, theVolume, func(context.Context) error { return nil }) }))
	c.s.end(a.agent)
	a.starts()
	c.works(3)
	must(t, a.holds())
	if c.phase() != "Active a" {
		t.Errorf("after a restart of the agent the record says %s", c.phase())
	}
	c.s.end(a.agent)
	must(t, c.target.Crash("a"))
	a.disk.PowerOff()
	a.boots()
	if err := a.holds(); err == nil {
		t.Error("a volume of an earlier boot is given to a pod")
	}
	c.works(5)
	if c.phase() != "Released a" && c.phase() != "Fenced a" {
		t.Errorf("after a restart of the machine the record says %s", c.phase())
	}
}

func TestAVolumeThatWasTakenAndNotMountedIsGivenUpByTheNextAgent(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	broken := errors.New("no filesystem")
	is(t, a.does(func() error {
		return a.owner.Take(c.ctx, theVolume, func(context.Context) error { return broken })
	}), broken)
	c.works(3)
	if c.phase() != "Active a" {
		t.Errorf("the epoch of a kubelet that asks again soon was given up: %s", c.phase())
	}
	c.s.end(a.agent)
	a.starts()
	c.works(3)
	if c.phase() != "Released a" || !a.guarded.IsZero() {
		t.Errorf("the record says %s, the guard knows of %v", c.phase(), a.guarded)
	}
}

func TestASessionThatEndedIsRenewedUnderTheMount(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.take())
	must(t, c.target.Relogin("a"))
	a.poked = false
	must(t, a.does(func() error { return a.owner.Watch(c.ctx) }))
	if !a.poked {
		t.Error("the end of the session is not noticed")
	}
	must(t, a.does(func() error { _, err := a.owner.Tend(c.ctx, theVolume); return err }))
	if got := changing(c.effects); got != "Register Reserve" {
		t.Errorf("renewed by %s", got)
	}
	if err := a.device.Write("1"); err != nil {
		t.Error(err)
	}
}

func TestADiskOfAnotherIdentityIsNotUsedAndStillComesOff(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.take())
	must(t, a.give())
	must(t, c.target.Replace("wwn:2"))
	is(t, a.take(), provision.ErrUnavailable)
	if a.device != nil {
		t.Error("it is mounted")
	}
}

func TestTheReservationOfADeletedVolumeGoesWithItsLastAttachment(t *testing.T) {
	c := calm(t)
	a, b := c.machines[0], c.machines[1]
	must(t, a.take())
	must(t, a.give())
	v := c.current().DeepCopy()
	now := metav1.Unix(1, 0)
	v.DeletionTimestamp = &now
	c.put(v)
	c.works(10)
	if n := len(c.current().Status.Ownership.Replicas); n > 0 {
		t.Fatalf("%d attachments are left", n)
	}
	must(t, b.kernel.Attach(c.ctx, theDisk))
	if view, err := b.kernel.Look(c.ctx, theDisk); err != nil || view.Holder != 0 {
		t.Errorf("the reservation has the key %#x, %v", uint64(view.Holder), err)
	}
}

func (m *machine) keeps() bool {
	_, known := m.peer()
	return known
}

// deletes has an administrator delete the volume, and both nodes leave it.
func (c *cluster) deletes(t *testing.T) {
	t.Helper()
	v := c.current().DeepCopy()
	now := metav1.Unix(1, 0)
	v.DeletionTimestamp = &now
	c.put(v)
	c.works(10)
	if n := len(c.current().Status.Ownership.Replicas); n > 0 {
		t.Fatalf("%d attachments are left", n)
	}
}

// vanishes has the API server say that there is no such volume.
func (c *cluster) vanishes() {
	c.gone = true
	for range 3 {
		for _, m := range c.machines {
			m.poked = true
			m.tends()
		}
		c.finish()
	}
}

func TestADeletedVolumeIsForgottenOnceItsNodeHasLeftItAndItsObjectIsGone(t *testing.T) {
	c := calm(t)
	a, b := c.machines[0], c.machines[1]
	must(t, a.take())
	must(t, a.give())
	c.deletes(t)
	if !a.keeps() {
		t.Error("it is forgotten while there is a record")
	}
	c.vanishes()
	for _, m := range []*machine{a, b} {
		if m.keeps() {
			t.Errorf("%s keeps the journal of a deleted volume", m.name)
		}
	}
}

func TestAVolumeIsNotForgottenAsLongAsItsRecordOrItsDataMayNeedIt(t *testing.T) {
	for name, happens := range map[string]func(t *testing.T, c *cluster, a *machine){
		"its object is gone, and nothing said that it is being deleted": func(t *testing.T, c *cluster, a *machine) {
			must(t, a.give())
			c.vanishes() // as with a backup from before the volume
		},
		"a pod has it when its object goes": func(_ *testing.T, c *cluster, _ *machine) {
			v := c.current().DeepCopy()
			now := metav1.Unix(1, 0)
			v.DeletionTimestamp = &now
			c.put(v)
			c.works(2)
			c.vanishes()
		},
		"the API server does not answer": func(t *testing.T, c *cluster, a *machine) {
			must(t, a.give())
			c.deletes(t)
			c.down = true
			c.vanishes()
		},
		"another agent saw the deletion": func(t *testing.T, c *cluster, a *machine) {
			must(t, a.give())
			c.deletes(t)
			c.s.end(a.agent)
			a.starts()
			c.vanishes()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := calm(t)
			a := c.machines[0]
			must(t, a.take())
			happens(t, c, a)
			if !a.keeps() {
				t.Error("it is forgotten")
			}
		})
	}
}

func TestAPeerIsAnsweredWhileAnOperationHoldsTheVolume(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.does(func() error {
		return a.owner.Take(c.ctx, theVolume, func(ctx context.Context) error {
			p, may, err := a.owner.Peer(ctx, theVolume, "b")
			if err != nil || !may || p.Node != "a" || p.Copy.Opened.Number != 2 {
				t.Errorf("the answer is %+v, %v, %v", p, may, err)
			}
			return nil
		})
	}))
}

func TestOnlyControllersAndNodesOfTheRecordAreTold(t *testing.T) {
	c := calm(t)
	a := c.machines[0]
	must(t, a.take())
	unknown := "pvc-00000000-0000-0000-0000-000000000009"
	for _, tc := range []struct {
		volume, asker string
		may           bool
	}{
		{theVolume, cert.Controllers, true}, {theVolume, "a", true}, {theVolume, "b", true}, {theVolume, "stranger", false}, {theVolume, "", false},
		{unknown, cert.Controllers, true}, {"../" + theVolume, cert.Controllers, false},
	} {
		must(t, a.does(func() error {
			p, may, err := a.owner.Peer(c.ctx, tc.volume, tc.asker)
			if may != tc.may || may && p.Node != "a" || !may && p.Node != "" {
				t.Errorf("%q asks for %s: %+v, %v", tc.asker, tc.volume, p, may)
			}
			return err
		}))
	}
	c.down = true
	err := a.does(func() error { _, _, err := a.owner.Peer(c.ctx, theVolume, "b"); return err })
	if err == nil {
		t.Error("a node is told while it is not known whether it may ask")
	}
	must(t, a.does(func() error { _, _, err := a.owner.Peer(c.ctx, theVolume, cert.Controllers); return err }))
}

func TestTheDiskOfAVolumeIsTheOneThatItNames(t *testing.T) {
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: theVolume}}
	v.Spec.Replication.Attachments = &v1alpha1.Attachments{MaxShares: 2}
	_, err := owner.Locate(v)
	is(t, err, provision.ErrUnavailable)
	v.Spec.Replication.Attachments.Disk = &v1alpha1.SharedDisk{Handle: "sim:///a", Identity: "wwn:1"}
	if d, err := owner.Locate(v); err != nil || d != (shared.Disk{Volume: theVolume, Handle: "sim:///a", Identity: "wwn:1"}) {
		t.Errorf("it is %+v, %v", d, err)
	}
}
