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

// unwatched returns a provisioner that has seen its group and does not watch it. It notices
// changes by others only by the group's number.
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

// slowed begins a query. LVM answers it at once, but the answer arrives only when arrive is
// called. Other queries are not held up.
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

// An own change raises the number that others' changes have left, though these changes are not
// known yet. So if it overtakes the report that would show them, LVM must be asked again.
func TestAChangeByOthersIsSeenThoughAnOwnChangeOvertakesTheReport(t *testing.T) {
	host, p := unwatched(t)
	host.PutForeign(vg.Name, "theirs", 3*unit)
	create(t, p, request("pvc-1", 2)) // after which the number shows that others changed the group, too
	arrive := slowed(t, host, func() { _, _ = p.Report(t.Context()) })
	create(t, p, request("pvc-2", 2))
	arrive()
	if pool := poolOf(t, p, vg); pool.Foreign != 3*unit || len(pool.Volumes) != 2 {
		t.Errorf("reported %+v", pool)
	}
}

func TestAChangeByOthersIsNotForgottenForAnOlderAnswer(t *testing.T) {
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

func TestAnAbandonedReportStaysDueForTheNextCaller(t *testing.T) {
	host, p := unwatched(t)
	host.PutForeign(vg.Name, "theirs", 3*unit)
	create(t, p, request("pvc-1", 2))
	ctx, cancel := context.WithCancel(t.Context())
	arrive := slowed(t, host, func() { _, _ = p.Report(ctx) })
	cancel() // the first caller goes away without an answer
	defer arrive()
	if pool := poolOf(t, p, vg); pool.Foreign != 3*unit {
		t.Errorf("reported %+v", pool)
	}
}

// A report that is older than an own change does not hide the change, even where the number
// cannot be read.
func TestAnOwnChangeIsNotForgottenForAnOlderAnswer(t *testing.T) {
	for name, unreadable := range map[string]bool{"the number is read": false, "the number cannot be read": true} {
		t.Run(name, func(t *testing.T) {
			host, p := unwatched(t)
			arrive := slowed(t, host, func() { _, _ = p.Get(t.Context(), "pvc-unknown") })
			host.Disturb(func(h *lvmtest.Host) { h.Unreadable = unreadable })
			v := create(t, p, request("pvc-1", 2))
			arrive()
			if here, _ := p.Knows("pvc-1"); !here { // which asks LVM for nothing
				t.Error("it is forgotten until LVM is asked anew")
			}
			if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got != v {
				t.Errorf("made %+v, and then it is %+v, %v", v, got, err)
			}
		})
	}
}
