package lvm_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// finishing is a machine on which another process makes a copy whole just before this process
// holds the copy's device. The copy's user then writes to it.
type finishing struct {
	*lvmtest.Host
	once sync.Once
}

const mine, at = "its user's", unit + 4096

func (f *finishing) Hold(path string, is provision.Identity) (lvm.Holder, error) {
	if path == "/dev/vg-a/pvc-2" {
		f.once.Do(func() {
			f.Edit(func(groups map[string]*lvmtest.Group) (unnoticed string) {
				v := groups[vg.Name].Volumes["pvc-2"]
				for i, tag := range v.Tags {
					v.Tags[i] = strings.Replace(tag, "berth.dev/copying=", "berth.dev/volume=", 1)
				}
				groups[vg.Name].Seqno++
				return ""
			})
			f.WriteAt(path, mine, at)
		})
	}
	return f.Host.Hold(path, is)
}

func TestACopyThatAnotherProcessMadeWholeIsNotFilledOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		c.CopyStep = unit
		c.Devices = &finishing{Host: host}
		p, _ := start(t, c)
		holdsSecret(t, host, p, request("pvc-1", 2))
		r := request("pvc-2", 2)
		r.Source = provision.Source{Volume: "pvc-1"}
		if _, err := p.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool {
			v, err := p.Get(t.Context(), "pvc-2")
			return err == nil && !v.Copying && poolOf(t, p, vg).Free == 96*unit
		}, "it is not whole, or what it was copied from is left")
		if got := host.ReadAt("/dev/vg-a/pvc-2", len(mine), at); got != mine {
			t.Errorf("it holds %q", got)
		}
	})
}
