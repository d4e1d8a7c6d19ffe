package lvm_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// stunted makes a copy of an ext4 volume of 8 units. The copy should have 12 units, but LVM fails
// to extend it until heal is called.
func stunted(t *testing.T) (host *lvmtest.Host, p *lvm.Provisioner, heal func()) {
	t.Helper()
	host = thinHost()
	var healed atomic.Bool
	host.Around = only("lvextend", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		if healed.Load() {
			return do()
		}
		return nil, exit5(c)
	})
	_, c := counted(host)
	p, _ = start(t, c)
	create(t, p, requestIn(thin, "pvc-1", 8))
	if _, err := p.Format(t.Context(), provision.FormatRequest{ID: "pvc-1", Filesystem: provision.Ext4}); err != nil {
		t.Fatal(err)
	}
	if v, err := p.Create(t.Context(), larger); err == nil || !strings.Contains(err.Error(), "something strange") {
		t.Fatalf("made %+v, %v", v, err)
	}
	return host, p, func() { healed.Store(true) }
}

var larger = copyOf("pvc-2", 12, provision.Source{Volume: "pvc-1"})

func wantWhole(t *testing.T, host *lvmtest.Host, p provision.Provisioner, units int64) {
	t.Helper()
	v, err := p.Get(t.Context(), "pvc-2")
	if err != nil || v.Copying || v.Size != units*unit || v.Filesystem != provision.Ext4 {
		t.Errorf("the copy is %+v, %v", v, err)
	}
	whole(t, host, p)
}

func TestACopyThatIsTooSmallYetTakesItsRoomAndCannotBeUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, _ := stunted(t)
		if v, err := p.Get(t.Context(), "pvc-2"); err != nil || !v.Copying || v.Size != 12*unit {
			t.Errorf("got %+v, %v", v, err)
		}
		if pool := poolOf(t, p, thin); pool.Free != 80*unit {
			t.Errorf("reported %+v", pool)
		}
		_, format := p.Format(t.Context(), provision.FormatRequest{ID: "pvc-2", Filesystem: provision.Ext4})
		_, snapshot := p.Snapshot(t.Context(), snapshotOf("pvc-2"))
		_, clone := p.Create(t.Context(), copyOf("pvc-3", 12, provision.Source{Volume: "pvc-2"}))
		for _, err := range []error{format, snapshot, clone} {
			if !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("using it: %v", err)
			}
		}
		if err := p.Delete(t.Context(), "pvc-2"); err != nil {
			t.Errorf("deleting it: %v", err)
		}
	})
}

func TestACopyThatIsStillTooSmallIsFinishedByTheNextCall(t *testing.T) {
	for name, tc := range map[string]struct {
		ask   func(*testing.T, *lvm.Provisioner) error
		units int64
	}{
		"the caller repeats the request": {func(t *testing.T, p *lvm.Provisioner) error {
			_, err := p.Create(t.Context(), larger)
			return err
		}, 12},
		"the caller repeats the request after the source is gone": {func(t *testing.T, p *lvm.Provisioner) error {
			if err := p.Delete(t.Context(), "pvc-1"); err != nil {
				return err
			}
			_, err := p.Create(t.Context(), larger)
			return err
		}, 12},
		"the caller expands the copy to less than the wanted size": {func(t *testing.T, p *lvm.Provisioner) error {
			_, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-2", Size: 10 * unit})
			return err
		}, 12},
		"the caller expands the copy to more than the wanted size": {func(t *testing.T, p *lvm.Provisioner) error {
			_, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-2", Size: 20 * unit})
			return err
		}, 20},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host, p, heal := stunted(t)
			heal()
			if err := tc.ask(t, p); err != nil {
				t.Fatal(err)
			}
			wantWhole(t, host, p, tc.units)
		}))
	}
}

func TestACopyThatIsTooSmallYetIsFinishedWithoutBeingAskedFor(t *testing.T) {
	for name, restart := range map[string]bool{"after a while": false, "after a restart": true} {
		t.Run(name, inBubble(func(t *testing.T) {
			host, p, heal := stunted(t)
			heal()
			if restart {
				p = over(t, host)
			}
			eventually(t, func() bool {
				poolOf(t, p, thin)
				v, err := p.Get(t.Context(), "pvc-2")
				return err == nil && !v.Copying
			}, "the copy is not finished")
			wantWhole(t, host, p, 12)
		}))
	}
}

func TestAnotherLogicalVolumeOfTheNameIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.host.PutForeign(vg.Name, "cow-snap-1", unit)
		_, err := s.snapshot("snap-1", "pvc-1")
		s.wantErrors(provision.ErrConflict, map[string]error{"taking it": err})
		s.host.PutForeignCow(vg.Name, "cow-theirs", "pvc-1", unit)
		s.restart()
		s.wantErrors(provision.ErrInUse, map[string]error{"deleting what somebody took a snapshot of": s.p.Delete(t.Context(), "pvc-1")})
		if p := s.pool(); p.Foreign != 2*unit {
			t.Errorf("reported %+v", p)
		}
	})
}
