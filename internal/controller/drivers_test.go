package controller_test

import (
	"errors"
	"slices"
	"testing"

	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/usecase/volumes"
)

// Two controllers of one process serve a driver each, of one cluster and of the same pools.
func TestTheControllersOfTwoDriversLeaveEachOthersVolumesAlone(t *testing.T) {
	other := driver.Local()
	other.Name = "other.example.org"
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	local, foreign := controllertest.Start(t, c.Environment), controllertest.Start(t, c.Environment, controllertest.WithDriver(other))
	made := map[*controllertest.Process]string{}
	for p, name := range map[*controllertest.Process]string{local: "local.berth.dev", foreign: other.Name} {
		made[p] = mustCreate(t, p, c.request(n)).ID
		if got := controllertest.Volume(t, c.Environment, made[p]).DriverName(); got != name {
			t.Errorf("driver %s made a volume of driver %s", name, got)
		}
	}
	for p, theirs := range map[*controllertest.Process]string{local: made[foreign], foreign: made[local]} {
		own := made[p]
		taken := on(volumes.Request{Name: theirs, Size: volumes.Size{Required: gi}, Mode: "Filesystem", FSType: "ext4", PoolClass: c.class}, n)
		_, got := p.Volumes.Get(within(t), theirs)
		_, grown := p.Volumes.Expand(within(t), theirs, volumes.Size{Required: 2 * gi})
		_, created := p.Volumes.Create(within(t), taken)
		for call, err := range map[string]error{
			"get": got, "expand": grown, "create": created, "delete": p.Volumes.Delete(within(t), theirs),
		} {
			if !errors.Is(err, driver.ErrForeign) {
				t.Errorf("%s of the other driver's volume: %v, want %v", call, err, driver.ErrForeign)
			}
		}
		list, _, err := p.Volumes.List(within(t), "", 0)
		has := func(id string) bool {
			return slices.ContainsFunc(list, func(v volumes.Volume) bool { return v.ID == id })
		}
		if err != nil || !has(own) || has(theirs) {
			t.Errorf("listed %+v, %v", list, err)
		}
	}
	for p, own := range made {
		if v := controllertest.Volume(t, c.Environment, own); v == nil || v.DeletionTimestamp != nil || v.Spec.Capacity.Value() != gi {
			t.Errorf("volume %s has become %+v", own, v)
		}
		mustDelete(t, p, own)
	}
}
