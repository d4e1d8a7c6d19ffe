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
			result, err := Reported(tc.err)
			if result != tc.result || (err != nil) != tc.failed {
				t.Errorf("%v, %v", result, err)
			}
		})
	}
}

// refused is the result of a step that failed.
type refused struct {
	room, toolFailed int
	reason, said     string
}

func TestAStepThatFailedIsReportedAndTriedAgainInItsTime(t *testing.T) {
	late := reconcile.Result{RequeueAfter: RefusedDelay}
	for name, tc := range map[string]struct {
		err, reportErr error
		final          []string
		reported       reconcile.Result
		want           refused
		result         reconcile.Result
		failed         error
	}{
		"no room":                          {err: provision.ErrNoSpace, want: refused{room: 1, reason: "NoSpace"}, result: late},
		"a tool that fails":                {err: errAway, want: refused{toolFailed: 1, reason: "ProvisionerError"}, failed: errAway},
		"the device is in use":             {err: provision.ErrInUse, want: refused{reason: "InUse"}, failed: provision.ErrInUse},
		"an impossible wish":               {err: provision.ErrInvalid, want: refused{reason: "Invalid"}, result: late},
		"a wish that will stay impossible": {err: provision.ErrInvalid, final: []string{"Invalid"}, want: refused{reason: "Invalid"}},
		"the report met a conflict":        {err: errAway, reported: again, want: refused{toolFailed: 1, reason: "ProvisionerError"}, result: again},
		"the report failed":                {err: provision.ErrInUse, reportErr: errAway, want: refused{reason: "InUse"}, failed: errAway},
	} {
		t.Run(name, func(t *testing.T) {
			var got refused
			b := &Base{Node: "n", Refused: func() { got.room++ }, ToolFailed: func() { got.toolFailed++ }}
			result, err := b.Refuse(t.Context(), Refusal{
				What: "volume", Name: "v", Step: "Create", Err: fmt.Errorf("doing it: %w", tc.err), Final: tc.final,
				Report: func(reason, message string) (reconcile.Result, error) {
					got.reason, got.said = reason, message
					return tc.reported, tc.reportErr
				},
			})
			tc.want.said = "node n: doing it: " + tc.err.Error()
			if got != tc.want || result != tc.result || !errors.Is(err, tc.failed) {
				t.Errorf("%+v, %v, %v", got, result, err)
			}
		})
	}
}

func TestAProcessThatEndsReportsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := &Base{Refused: func() { t.Error("told of no room") }, ToolFailed: func() { t.Error("told of a failed tool") }}
	_, err := b.Refuse(ctx, Refusal{Err: provision.ErrNoSpace, Report: func(string, string) (reconcile.Result, error) {
		t.Error("reported")
		return reconcile.Result{}, nil
	}})
	if !errors.Is(err, provision.ErrNoSpace) {
		t.Error(err)
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
