package lvm_test

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// LVM would finish a change that it begins there at some later time, when no caller expects it.
func TestNothingIsChangedInAGroupThatDoesNotAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		pool provision.PoolRef
		wipe provision.Wipe
	}{
		"a thin volume":                    {thin, ""},
		"a thick volume that is wiped":     {vg, provision.WipeZero},
		"a thick volume that is not wiped": {vg, provision.WipeNone},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host := thinHost()
			_, c := counted(host)
			p, _ := start(t, c)
			r := requestIn(tc.pool, "pvc-1", 2)
			r.Wipe = tc.wipe
			create(t, p, r)
			answers := make(chan struct{})
			host.Disturb(func(h *lvmtest.Host) {
				h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
					select {
					case <-answers:
						return do()
					default:
					}
					if c.Operation == "fullreport" || c.Operation == "vgs" {
						<-answers
						return nil, exit5(c)
					}
					t.Errorf("%v was started", c.Args)
					return nil, exit5(c)
				}
			})
			host.PutForeign(vg.Name, "theirs", unit)
			eventually(t, func() bool { return poolOf(t, p, tc.pool).Problem != "" }, "the trouble is not reported")
			if _, err := p.Format(t.Context(), provision.FormatRequest{ID: "pvc-1", Filesystem: provision.Ext4}); !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("recording a filesystem: %v, want ErrUnavailable", err)
			}
			if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("deleting: %v, want ErrUnavailable", err)
			}
			close(answers)
			eventually(t, func() bool { return poolOf(t, p, tc.pool).Problem == "" }, "the group did not come back")
			if err := p.Delete(t.Context(), "pvc-1"); err != nil {
				t.Errorf("deleting when it answers again: %v", err)
			}
		}))
	}
}
