package controller_test

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
)

func TestACopyGoesWhereItsSourceIs(t *testing.T) {
	c := newCluster(t)
	small, large := c.node(t, "small", 10*gi), c.node(t, "large", 20*gi)
	p := controllertest.Start(t, c.Environment)
	source := c.request(small)
	source.FSType, source.Size.Required = v1alpha1.XFS, gi+1
	v := mustCreate(t, p, source)
	s := mustTake(t, p, snapshotOf(v.ID))
	for name, from := range map[string]*v1alpha1.VolumeSource{
		"a copy of a snapshot": {Snapshot: s.ID},
		"a copy of a volume":   {Volume: v.ID},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.request()
			r.Source, r.FSType, r.Size = from, "", volumes.Size{}

			_, err := p.Volumes.Create(within(t), on(r, large))
			wantError(t, err, volumes.ErrUnplaceable, "which is on node "+small.Name)
			if left := controllertest.Volume(t, c.Environment, r.Name); left != nil {
				t.Errorf("a Volume was made: %+v", left.Spec)
			}

			got := mustCreate(t, p, r)
			if got.Nodes[0] != small.Name || got.Capacity != v.Capacity || got.FSType != v1alpha1.XFS || *got.Source != *from {
				t.Errorf("got %+v of %+v", got, v)
			}
			if again := mustCreate(t, p, r); again.ID != got.ID || again.Capacity != got.Capacity {
				t.Errorf("asked again: %+v", again)
			}
			blank := r
			blank.Source, blank.FSType = nil, v1alpha1.XFS
			_, err = p.Volumes.Create(within(t), blank)
			wantError(t, err, provision.ErrConflict, "it was made from "+map[bool]string{true: "snapshot " + s.ID, false: "volume " + v.ID}[from.Snapshot != ""])
		})
	}
}

func TestABlankVolumeNeverPassesForACopy(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))
	r := c.request(n)
	r.Reservation = true // by a scheduler that knows of no sources
	mustCreate(t, p, r)

	r.Reservation, r.Source = false, &v1alpha1.VolumeSource{Volume: v.ID}
	if got := mustCreate(t, p, r); got.Source == nil || *got.Source != *r.Source {
		t.Errorf("got %+v, want a copy of %s", got, v.ID)
	}
}

func TestNothingIsCopiedByAnAgentThatDoesNotSayThatItCan(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(n))
	s := mustTake(t, p, snapshotOf(v.ID))
	n.SetOld(t)

	taken := snapshotOf(v.ID)
	_, err := p.Snapshots.Create(within(t), taken)
	wantError(t, err, provision.ErrUnavailable, "node "+n.Name+": its berth-agent does not say")
	if left := controllertest.Snapshot(t, c.Environment, v1alpha1.SnapshotName(taken.Name)); left != nil {
		t.Errorf("a Snapshot was made: %+v", left.Spec)
	}
	for _, from := range []v1alpha1.VolumeSource{{Snapshot: s.ID}, {Volume: v.ID}} {
		r := c.request(n)
		r.Source = &from
		_, err := p.Volumes.Create(within(t), r)
		wantError(t, err, provision.ErrUnavailable, "node "+n.Name+": its berth-agent does not say")
		if left := controllertest.Volume(t, c.Environment, r.Name); left != nil {
			t.Errorf("a Volume was made: %+v", left.Spec)
		}
	}
	if err := p.Snapshots.Delete(within(t), s.ID); err != nil {
		t.Errorf("deleting what is there: %v", err)
	}
}

func TestACopyThatCannotBeIsRefusedBeforeAnythingIsMade(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 20*gi)
	controllertest.NewClass(t, c.Environment, c.class+"-other")
	p := controllertest.Start(t, c.Environment)
	large := c.request(n)
	large.Size.Required = 2 * gi
	v := mustCreate(t, p, large)
	s := mustTake(t, p, snapshotOf(v.ID))
	const nobody = "00000000-0000-0000-0000-000000000000"
	tests := map[string]struct {
		change func(*volumes.Request)
		class  error
		told   string
	}{
		"a copy smaller than the source":       {func(r *volumes.Request) { r.Size = volumes.Size{Required: gi} }, volumes.ErrOutOfRange, "1Gi asked, less than the 2Gi of "},
		"a copy with a limit below the source": {func(r *volumes.Request) { r.Size = volumes.Size{Limit: gi} }, volumes.ErrOutOfRange, "the limit of 1Gi is below the 2Gi of "},
		"a copy with another volumeMode":       {func(r *volumes.Request) { r.Mode, r.FSType = v1alpha1.Block, "" }, provision.ErrInvalid, "is of volumeMode Filesystem"},
		"a copy with another filesystem":       {func(r *volumes.Request) { r.FSType = v1alpha1.XFS }, provision.ErrInvalid, "has the filesystem ext4"},
		"a copy in a class without the pool":   {func(r *volumes.Request) { r.PoolClass = c.class + "-other" }, provision.ErrInvalid, "does not select that pool"},
		"a copy of an unknown snapshot":        {func(r *volumes.Request) { r.Source = &v1alpha1.VolumeSource{Snapshot: "snap-" + nobody} }, provision.ErrNotFound, "snap-" + nobody},
		"a copy of a foreign snapshot":         {func(r *volumes.Request) { r.Source = &v1alpha1.VolumeSource{Snapshot: "x"} }, provision.ErrNotFound, "not an id"},
		"a copy of an unknown volume":          {func(r *volumes.Request) { r.Source = &v1alpha1.VolumeSource{Volume: "pvc-" + nobody} }, provision.ErrNotFound, "pvc-" + nobody},
	}
	for of, source := range map[string]*v1alpha1.VolumeSource{"snapshot": {Snapshot: s.ID}, "volume": {Volume: v.ID}} {
		for name, test := range tests {
			t.Run(name+", made from a "+of, func(t *testing.T) {
				r := c.request(n)
				r.Source, r.Size = source, volumes.Size{Required: 2 * gi}
				test.change(&r)
				_, err := p.Volumes.Create(within(t), r)
				wantError(t, err, test.class, test.told)
				if left := controllertest.Volume(t, c.Environment, r.Name); left != nil {
					t.Errorf("a Volume was made: %+v", left.Spec)
				}
			})
		}
	}
}
