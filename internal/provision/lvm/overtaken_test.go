package lvm_test

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// unwatched is a provisioner that has seen its group and does not watch it: what it
// notices of others it notices by the group's number.
func unwatched(t *testing.T) (*lvmtest.Host, *lvm.Provisioner) {
	t.Helper()
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
	_, c := counted(host)
	p, err := lvm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Wait)
	poolOf(t, p, vg)
	return host, p
}

// slowed begins a query, which LVM answers at once and whose answer arrives only when
// arrive is called. Other queries are not held up.
func slowed(t *testing.T, host *lvmtest.Host, query func()) (arrive func()) {
	t.Helper()
	looked, may, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	host.Disturb(func(h *lvmtest.Host) {
		h.Around = only("fullreport", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
			host.Disturb(func(h *lvmtest.Host) { h.Around = nil })
			out, err := do()
			close(looked)
			<-may
			return out, err
		})
	})
	go func() {
		defer close(done)
		query()
	}()
	<-looked
	return func() {
		close(may)
		<-done
	}
}

// An own change counts on from what others did before it, though what that was is not
// known. So when it overtakes the answer that would tell, that has to be asked for again.
func TestWhatOthersDidIsSeenThoughAnOwnChangeOvertakesTheReport(t *testing.T) {
	host, p := unwatched(t)
	host.PutForeign(vg.Name, "theirs", 3*unit)
	create(t, p, request("pvc-1", 2)) // after which the number tells that there is more
	arrive := slowed(t, host, func() { _, _ = p.Report(t.Context()) })
	create(t, p, request("pvc-2", 2))
	arrive()
	if pool := poolOf(t, p, vg); pool.Foreign != 3*unit || len(pool.Volumes) != 2 {
		t.Errorf("reported %+v", pool)
	}
}

func TestWhatOthersDidIsNotForgottenForAnOlderAnswer(t *testing.T) {
	host, p := unwatched(t)
	arrive := slowed(t, host, func() { _, _ = p.Get(t.Context(), "pvc-unknown") })
	host.PutForeign(vg.Name, "theirs", 3*unit)
	host.AddGroup("vg-new", 10)
	if _, err := p.Get(t.Context(), "pvc-unknown"); !errors.Is(err, provision.ErrNotFound) {
		t.Fatal(err)
	}
	arrive()
	pools, err := p.Report(t.Context())
	if err != nil || len(pools) != 2 || pools[0].Foreign != 3*unit {
		t.Errorf("reported %+v, %v", pools, err)
	}
}

func TestWhatIsDueStaysDueForWhoeverAsksWhileItIsRead(t *testing.T) {
	host, p := unwatched(t)
	host.PutForeign(vg.Name, "theirs", 3*unit)
	create(t, p, request("pvc-1", 2))
	ctx, cancel := context.WithCancel(t.Context())
	arrive := slowed(t, host, func() { _, _ = p.Report(ctx) })
	cancel() // who asked first goes away without an answer
	defer arrive()
	if pool := poolOf(t, p, vg); pool.Foreign != 3*unit {
		t.Errorf("reported %+v", pool)
	}
}

// Where the number cannot be read, what is known of an own change is not lost for an answer
// that is older than it.
func TestAnOwnChangeIsNotForgottenForAnOlderAnswer(t *testing.T) {
	for name, unreadable := range map[string]bool{"the number is read": false, "the number cannot be read": true} {
		t.Run(name, func(t *testing.T) {
			host, p := unwatched(t)
			arrive := slowed(t, host, func() { _, _ = p.Get(t.Context(), "pvc-unknown") })
			host.Disturb(func(h *lvmtest.Host) { h.Unreadable = unreadable })
			v := create(t, p, request("pvc-1", 2))
			arrive()
			if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got != v {
				t.Errorf("made %+v, and then it is %+v, %v", v, got, err)
			}
		})
	}
}
