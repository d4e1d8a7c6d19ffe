package zfs_test

import (
	"errors"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

// Berth destroys a zvol again that it could not make for want of room, and no other volume:
// neither the time of its making nor a missing reservation is a reason.
func TestAVolumeThatTheChangeDidNotMakeStaysWhenItHasNoRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		// since changes the volume after its reservation was taken away.
		since func(*zfstest.Dataset)
		// known says that the provisioner has seen it so.
		known bool
		want  error
	}{
		"the provisioner knows the empty zvol":                                       {func(*zfstest.Dataset) {}, true, provision.ErrNoSpace},
		"the provisioner knows the zvol, the zvol holds data, and the clock went on": {func(d *zfstest.Dataset) { d.Data, d.Created = 16<<20, time.Now().Add(48*time.Hour) }, true, provision.ErrNoSpace},
		"another program made a zvol with data meanwhile":                            {func(d *zfstest.Dataset) { d.Data = 16 << 20 }, false, provision.ErrNoSpace},
		"another program made and formatted a zvol meanwhile":                        {func(d *zfstest.Dataset) { d.Props["berth.dev:fs"] = provision.Ext4 }, false, provision.ErrNoSpace},
		"another program made a zvol with a snapshot meanwhile":                      {func(d *zfstest.Dataset) { d.Snapshots["daily"] = &zfstest.Snapshot{Volsize: d.Volsize} }, false, provision.ErrNoSpace},
		"another program made a zvol of another size with reserved room meanwhile":   {func(d *zfstest.Dataset) { d.Volsize, d.Refreservation = 50*unit, 51*unit }, false, provision.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			h.Around = only("zfs destroy", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				if c.Args[len(c.Args)-1] == volumes+"pvc-1" {
					t.Error("ZFS was asked to destroy it")
				}
				return do()
			})
			p, stop := start(t, config(h))
			r := request("pvc-1", 100)
			made(t, p, r)
			stop()
			var volume *zfstest.Dataset
			h.Edit(func(zpools map[string]*zfstest.Zpool) {
				volume = zpools["tank"].Datasets[volumes+"pvc-1"]
				volume.Refreservation = 0
				tc.since(volume)
				if !tc.known {
					delete(zpools["tank"].Datasets, volumes+"pvc-1")
				}
			})
			p, _ = start(t, config(h))
			reported(t, p)
			h.Edit(func(zpools map[string]*zfstest.Zpool) { zpools["tank"].Datasets[volumes+"pvc-1"] = volume })
			takeRoom(h)
			if _, err := p.Create(t.Context(), r); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if p.Wait(); !there(h, volumes+"pvc-1") {
				t.Error("it was destroyed")
			}
		})
	}
}
