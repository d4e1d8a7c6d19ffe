package lvm_test

import (
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
)

// busy is a machine on which a program holds each device that is to be wiped.
type busy struct{ lvm.Devices }

func (busy) Hold(string, provision.Identity) (lvm.Holder, error) { return nil, lvm.ErrBusy }

func TestADeletedVolumeThatAProgramHoldsSaysHowToFindTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		c.Devices = busy{host}
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 2))
		remove(t, p, "pvc-1")
		failing(t, p, "lsblk /dev/vg-a/pvc-1 on the node shows by what")
	})
}

func TestADeletionIsSignalledThoughNothingWatchesTheDisks(t *testing.T) {
	for _, wipe := range []provision.Wipe{provision.WipeNone, provision.WipeZero} {
		_, p := unwatched(t)
		r := request("pvc-1", 2)
		r.Wipe = wipe
		create(t, p, r)
		poolOf(t, p, vg)
		select {
		case <-p.Changed():
		default:
		}
		remove(t, p, "pvc-1")
		p.Wait()
		select {
		case <-p.Changed():
		default:
			t.Errorf("a deletion with wipe %s was not signalled", wipe)
		}
	}
}
