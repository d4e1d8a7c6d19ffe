package lvm_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

func suspend(host *lvmtest.Host, id string) {
	host.On("/dev/vg-a/"+id, func(v *lvmtest.Volume) { v.Suspended = true })
}

func wantResumed(t *testing.T, host *lvmtest.Host, id string) {
	t.Helper()
	host.On("/dev/vg-a/"+id, func(v *lvmtest.Volume) {
		if v.Suspended {
			t.Errorf("%s is suspended", id)
		}
	})
}

func TestADeviceThatADeadCommandLeftSuspendedIsResumed(t *testing.T) {
	for name, die := range map[string]func(*testing.T, *lvmtest.Host, *lvm.Provisioner){
		"the command and the provisioner die": func(t *testing.T, host *lvmtest.Host, _ *lvm.Provisioner) {
			suspend(host, "pvc-1")
			next := over(t, host)
			poolOf(t, next, thin)
			next.Wait()
		},
		"the command alone dies": func(t *testing.T, host *lvmtest.Host, p *lvm.Provisioner) {
			host.Around = only("lvcreate", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) {
				suspend(host, "pvc-1")
				return nil, exit5(c)
			})
			if s, err := p.Snapshot(t.Context(), snapshotOf("pvc-1")); err == nil {
				t.Errorf("took %+v", s)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			host := thinHost()
			p := over(t, host)
			create(t, p, promised("pvc-1", 2))
			create(t, p, request("pvc-2", 2))
			die(t, host, p)
			wantResumed(t, host, "pvc-1")
		})
	}
}

func TestADeviceThatCannotBeResumedIsAProblemUntilItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := thinHost()
		create(t, over(t, host), promised("pvc-1", 2))
		suspend(host, "pvc-1")
		tried := make(chan struct{})
		host.Around = only("lvchange", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			select {
			case <-tried:
				return do()
			default:
				close(tried)
				return nil, exit5(c)
			}
		})
		_, c := counted(host)
		p, _ := start(t, c)
		problem := func() string {
			v, err := p.Get(t.Context(), "pvc-1")
			if err != nil {
				t.Fatal(err)
			}
			return v.Problem
		}
		eventually(t, func() bool { return strings.Contains(problem(), "lvchange --refresh vg-a/pvc-1") }, "nothing is said of it")
		eventually(t, func() bool { return problem() == "" }, "it is not resumed")
		wantResumed(t, host, "pvc-1")
	})
}

func TestASuspendedVolumeIsResumedBeforeItIsCopied(t *testing.T) {
	for _, id := range []string{"pvc-1", "snap-1", "cow-snap-1"} {
		t.Run(id, inBubble(func(t *testing.T) {
			s := thick(t, 100)
			s.took()
			s.stop()
			suspend(s.host, id)
			s.restart()
			s.pool()
			s.awaitWhole()
			if id != "cow-snap-1" { // which is removed by then
				wantResumed(t, s.host, id)
			}
		}))
	}
}
