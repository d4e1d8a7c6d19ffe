//go:build platform

package guesttest

import (
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// mapping is what the device mapper needs to make a device again.
type mapping struct{ name, uuid, table string }

func remembered(t *testing.T, name string) mapping {
	t.Helper()
	return mapping{
		name: name, table: dmsetup(t, "table", name),
		uuid: dmsetup(t, "info", "--columns", "--noheadings", "--options", "uuid", name),
	}
}

// An activation of a thin pool that fails halfway leaves the devices of the pool's parts. LVM then
// refuses to activate the pool, until the parts are deactivated.
func TestAThinPoolWhosePartsAFailedActivationLeftIsActivatedOnRealLVM(t *testing.T) {
	pool := thinPool(t, 64)
	lvmtest.EmptyAfter(t, pool.Name)
	c, _, _ := lvmtest.RealConfig(t)
	p, _ := lvmtest.Start(t, c)
	v := made(t, p, request(pool, "pvc-1", 8))
	parts := []mapping{remembered(t, dataDevice), remembered(t, ownDevice+"_tmeta")}
	off := func() { lvmtest.LVM(t, "lvchange", "--activate", "n", pool.Name, "vg-berth/pvc-1") }
	prohibited := func(t *testing.T) {
		t.Helper()
		_, err := run.Exec{}.Change(run.Command{Operation: "lvchange", Program: "lvm", Args: []string{"lvchange", "--yes", "--activate", "y", pool.Name}})
		if err == nil || !strings.Contains(err.Error(), "prohibited") {
			t.Fatalf("LVM does not refuse to activate the pool: %v", err)
		}
	}
	for _, left := range [][]mapping{parts[:1], parts[1:], parts} {
		var names []string
		off()
		for _, d := range left {
			dmsetup(t, "create", d.name, "--uuid", d.uuid, "--table", d.table)
			names = append(names, d.name)
		}
		t.Run(strings.Join(names, " and "), func(t *testing.T) {
			prohibited(t)
			if got, err := p.Get(t.Context(), v.ID); err != nil || got != v || (kernel.Devices{}).Leads(v.Content.Source, v.Content.Identity) != nil {
				t.Errorf("got %+v, %v; want %+v", got, err, v)
			}
			eventually(t, p, pool, func(p provision.Pool) bool { return p.Problem == "" }, "the pool does not work")
		})
	}
	t.Run("an administrator looks at the metadata", func(t *testing.T) {
		off()
		lvmtest.LVM(t, "lvchange", "--yes", "--activate", "y", pool.Name+"_tmeta")
		prohibited(t)
		if got, err := p.Get(t.Context(), v.ID); err != nil || !strings.Contains(got.Problem, "prohibited") {
			t.Errorf("got %+v, %v; want that LVM refuses", got, err)
		}
		if devices, err := (kernel.Devices{}).Mapped(); err != nil || !devices[ownDevice+"_tmeta"].ReadOnly {
			t.Errorf("the metadata is not read-only any more: %v, %v", devices, err)
		}
		lvmtest.LVM(t, "lvchange", "--activate", "n", pool.Name+"_tmeta")
		if got, err := p.Get(t.Context(), v.ID); err != nil || got.Problem != "" {
			t.Errorf("afterwards: %+v, %v", got, err)
		}
	})
}
