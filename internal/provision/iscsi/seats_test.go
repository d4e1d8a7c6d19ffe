package iscsi_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/shared"
)

func TestACallWaitsForALookAndDoesNotFailForIt(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, f *fixture) error{
		"attach":   func(ctx context.Context, f *fixture) error { return f.disks.Attach(ctx, disk) },
		"detach":   func(ctx context.Context, f *fixture) error { return f.disks.Detach(ctx, disk) },
		"register": func(ctx context.Context, f *fixture) error { return f.disks.Register(ctx, disk, keyA, shared.Idle) },
		"reserve":  func(ctx context.Context, f *fixture) error { return f.disks.Reserve(ctx, disk, 0, keyA) },
		"flush":    func(ctx context.Context, f *fixture) error { return f.disks.Flush(ctx, disk) },
		"look":     func(ctx context.Context, f *fixture) error { _, err := f.disks.Look(ctx, disk); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, on := attached(t, keyA)
				ended := make(chan error, 1)
				on.when("INQUIRY", func() {
					go func() { ended <- call(t.Context(), f) }()
					if synctest.Wait(); len(ended) > 0 {
						t.Error("it does not wait")
					}
				})
				if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Link != ownership.Attached {
					t.Errorf("the look: %+v, %v", v, err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				f.disks.Wait()
			})
		})
	}
}

// The first look is one second old when the other call comes.
func TestACallWaitsForALookNoLongerThanEitherMayTake(t *testing.T) {
	for name, c := range map[string]struct{ asks, patience, waits time.Duration }{
		"the look is left behind first":  {asks: time.Second, patience: time.Hour, waits: 9 * time.Second},
		"its caller gives up first":      {asks: time.Second, patience: 3 * time.Second, waits: 3 * time.Second},
		"the look was left behind early": {asks: 11 * time.Second, patience: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, on := attached(t, keyA)
				on.when("INQUIRY", func() { <-time.After(time.Minute) })
				go func() { _, _ = f.disks.Look(t.Context(), disk) }()
				<-time.After(c.asks)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), c.patience)
				defer cancel()
				err := f.disks.Flush(ctx, disk)
				if waited := time.Since(began); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "an earlier call, look") || waited != c.waits {
					t.Errorf("after %v: %v", waited, err)
				}
				f.disks.Wait()
				if err := f.disks.Flush(t.Context(), disk); err != nil {
					t.Errorf("and when the look has ended: %v", err)
				}
			})
		})
	}
}

// iscsiadm is not killed. Its seat stays taken until it ends.
func TestADiskForWhichISCSIAdmHangsIsSeenToFail(t *testing.T) {
	for name, c := range map[string]struct {
		step   string
		before func(f *fixture)
		call   func(t *testing.T, f *fixture) error
		after  ownership.Link
	}{
		"attaching": {"iscsiadm login", func(f *fixture) { f.detach() }, func(t *testing.T, f *fixture) error { return f.disks.Attach(t.Context(), disk) }, ownership.AttachFailed},
		"detaching": {"iscsiadm logout", func(*fixture) {}, func(t *testing.T, f *fixture) error { return f.disks.Detach(t.Context(), disk) }, ownership.Detached},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, on := attached(t, 0)
				c.before(f)
				<-time.After(time.Hour) // it does not count what was before
				ended := make(chan struct{})
				on.when(c.step, func() { <-ended })
				since := time.Now().UTC().Format(time.RFC3339)
				_ = c.call(t, f) // a detach is left behind
				<-time.After(2 * time.Minute)
				if v, err := f.disks.Look(t.Context(), disk); err != nil || !same(v, shared.View{Disk: ownership.Disk{Link: ownership.Attaching}}) {
					t.Errorf("after two minutes: %+v, %v", v, err)
				}
				<-time.After(2 * time.Minute)
				v, err := f.disks.Look(t.Context(), disk)
				if err != nil || v.Link != ownership.AttachFailed || !strings.Contains(v.Problem, "iscsiadm has not ended since "+since) || !strings.Contains(v.Problem, "restart iscsid") {
					t.Errorf("%+v, %v", v, err)
				}
				close(ended)
				f.disks.Wait()
				if v, err := f.disks.Look(t.Context(), disk); err != nil || v.Link != c.after || strings.Contains(v.Problem, "has not ended") {
					t.Errorf("when it has ended: %+v, %v", v, err)
				}
			})
		})
	}
}

// What the node waits for may be anything else than iscsiadm, and the attach ends by itself.
func TestAnAttachThatWaitsForItsTurnIsUnderWayHoweverLongThatTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, on := faults(t, iscsitest.Options{}, nil)
		ended := make(chan struct{})
		on.when("scan", func() { <-ended })
		if err := f.disks.Attach(t.Context(), disk); err != nil {
			t.Error(err)
		}
		<-time.After(time.Hour)
		if v, err := f.disks.Look(t.Context(), disk); err != nil || !same(v, shared.View{Disk: ownership.Disk{Link: ownership.Attaching}}) {
			t.Errorf("%+v, %v", v, err)
		}
		close(ended)
		f.disks.Wait()
	})
}
