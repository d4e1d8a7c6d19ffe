package zfs_test

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// unreserved makes a volume of 8 units as a crash leaves it: its room is not reserved, and it may
// be smaller. It returns the room that was reserved.
func unreserved(t *testing.T, h *zfstest.Host, r provision.CreateRequest, size int64) (room int64) {
	t.Helper()
	made(t, fresh(t, h), r)
	edit(h, volumes+r.ID, func(d *zfstest.Dataset) {
		if room, d.Refreservation = d.Refreservation, 0; d.Volsize > 0 {
			d.Volsize = size
		}
	})
	return room
}

func TestAVolumeWithoutItsRoomGetsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		story
		size int64
	}{
		"a zvol": {zvols, 8}, "a zvol below the wanted size": {zvols, 4}, "a dataset": {files, 8},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			r := request("pvc-1", 8)
			tc.ask(&r)
			room := unreserved(t, h, r, tc.size*unit)
			counter, c := counted(h)
			p, err := newProvisioner(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, sets := range []int{1, 0} {
				if v := made(t, p, r); v.Size != 8*unit {
					t.Errorf("it is %+v", v)
				}
				if p.Wait(); counter.Take()["zfs set"] != sets {
					t.Errorf("its room was not reserved once")
				}
			}
			edit(h, volumes+"pvc-1", func(d *zfstest.Dataset) {
				if d.Refreservation != room || tc.filesystem != provision.Dataset && (d.Volsize != 8*unit || d.Refquota > 0) {
					t.Errorf("of %d bytes, quota %d, %d are reserved; want %d", d.Volsize, d.Refquota, d.Refreservation, room)
				}
			})
		})
	}
}

func TestAVolumeWithoutItsRoomStaysSoWhereItMustNotBeGiven(t *testing.T) {
	for name, tc := range map[string]struct {
		ask   func(*provision.CreateRequest)
		state string
		want  error
	}{
		"the caller asks for a smaller volume": {func(r *provision.CreateRequest) { r.Size = 2 * unit }, "ONLINE", provision.ErrConflict},
		"the class keeps the room spare":       {func(r *provision.CreateRequest) { r.Limits.SparePercent = 100 }, "ONLINE", provision.ErrNoSpace},
		"the zpool lost a disk":                {func(*provision.CreateRequest) {}, "DEGRADED", provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			r := request("pvc-1", 8)
			unreserved(t, h, r, 4*unit)
			setState(h, tc.state)
			tc.ask(&r)
			if v, err := fresh(t, h).Create(t.Context(), r); !errors.Is(err, tc.want) {
				t.Errorf("%+v, %v; want %v", v, err, tc.want)
			}
			edit(h, volumes+"pvc-1", func(d *zfstest.Dataset) {
				if d.Volsize != 4*unit || d.Refreservation > 0 {
					t.Errorf("it has %d bytes, of which %d are reserved", d.Volsize, d.Refreservation)
				}
			})
		})
	}
}
