package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/provision"
)

var (
	errAway  = errors.New("connection refused")
	missing  = apierrors.NewNotFound(v1alpha1.Resource("volumes"), "v")
	outdated = apierrors.NewConflict(v1alpha1.Resource("volumes"), "v", nil)
	again    = reconcile.Result{RequeueAfter: StaleDelay}
)

func TestTheResultOfAReportDecidesARetry(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		result reconcile.Result
		failed bool
	}{
		"the report was written":           {},
		"the object of the report is gone": {err: missing},
		"the object has changed":           {err: outdated, result: again},
		"the API server is away":           {err: errAway, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &data{reportErr: tc.err}
			result, err := f.work().report(t.Context(), volume(), answer{Entry: &v1alpha1.ReplicaStatus{}, News: true})
			if result != tc.result || (err != nil) != tc.failed {
				t.Errorf("%v, %v", result, err)
			}
		})
	}
}

func TestAStepThatFailedIsReportedAndTriedAgainInItsTime(t *testing.T) {
	late := reconcile.Result{RequeueAfter: RefusedDelay}
	for name, tc := range map[string]struct {
		err, reportErr   error
		final            bool
		room, toolFailed int
		reason           string
		result           reconcile.Result
		failed           error
	}{
		"no room":                          {err: provision.ErrNoSpace, room: 1, reason: "NoSpace", result: late},
		"a tool that fails":                {err: errAway, toolFailed: 1, reason: "ProvisionerError", failed: errAway},
		"the device is in use":             {err: provision.ErrInUse, reason: "InUse", failed: provision.ErrInUse},
		"an impossible wish":               {err: provision.ErrInvalid, reason: "Invalid", result: late},
		"a wish that will stay impossible": {err: provision.ErrInvalid, final: true, reason: "Invalid"},
		"the report met a conflict":        {err: errAway, reportErr: outdated, toolFailed: 1, reason: "ProvisionerError", result: again},
		"the report failed":                {err: provision.ErrInUse, reportErr: errAway, reason: "InUse", failed: errAway},
	} {
		t.Run(name, func(t *testing.T) {
			f := &data{reportErr: tc.reportErr, final: tc.final}
			w := f.work()
			var room, toolFailed int
			w.Refused, w.ToolFailed = func() { room++ }, func() { toolFailed++ }
			result, err := w.refuse(t.Context(), volume(), decide.Create, nil, fmt.Errorf("doing it: %w", tc.err))
			if want := tc.reason + ": node n: doing it: " + tc.err.Error(); len(f.reported) != 1 || f.reported[0] != want {
				t.Errorf("reported %q, want %q", f.reported, want)
			}
			if room != tc.room || toolFailed != tc.toolFailed || result != tc.result || !errors.Is(err, tc.failed) {
				t.Errorf("room %d, tool failed %d, %v, %v", room, toolFailed, result, err)
			}
		})
	}
}

func TestAProcessThatEndsReportsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &data{}
	w := f.work()
	w.Refused, w.ToolFailed = func() { t.Error("told of no room") }, func() { t.Error("told of a failed tool") }
	if _, err := w.refuse(ctx, volume(), decide.Create, nil, provision.ErrNoSpace); !errors.Is(err, provision.ErrNoSpace) || len(f.reported) > 0 {
		t.Errorf("%v, reported %q", err, f.reported)
	}
}

func TestAProvisionerThatDoesNotAnswerInTimeIsSaid(t *testing.T) {
	f := &data{}
	_, _ = f.work().refuse(t.Context(), volume(), decide.Create, nil, context.DeadlineExceeded)
	if want := "ProvisionerError: node n: the provisioner does not answer in time: context deadline exceeded"; f.reported[0] != want {
		t.Errorf("reported %q, want %q", f.reported, want)
	}
}

func TestAClassThatDoesNotExistIsNoFailureOfTheAPIServer(t *testing.T) {
	for want, given := range map[error]error{entries.ErrNoClass: missing, errAway: errAway} {
		_, err := Class(t.Context(), func(context.Context, string) (*v1alpha1.PoolClass, error) { return nil, given }, "fast")
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

type deadlines struct{ after time.Duration }

func (d *deadlines) Lock(ctx context.Context, _ string) (func(), error) {
	at, bounded := ctx.Deadline()
	if bounded {
		d.after = time.Until(at)
	}
	return func() {}, nil
}

func TestALockIsNotWaitedForLongerThanAStep(t *testing.T) {
	var d deadlines
	b := &Base{Locks: &d}
	if _, err := b.Lock(t.Context(), "v"); err != nil || d.after <= 0 || d.after > StepTimeout {
		t.Errorf("waits %s, %v", d.after, err)
	}
}
