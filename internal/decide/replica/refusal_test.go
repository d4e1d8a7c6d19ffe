package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/provision"
)

func TestRefusal(t *testing.T) {
	tests := map[string]struct {
		volume   *v1alpha1.Volume
		step     decide.Verb
		record   *provision.Volume
		err      error
		state    v1alpha1.ReplicaState
		reason   string
		retried  bool
		capacity int64 // 0 means none
	}{
		"no room to create":         {volume: volume(), step: decide.Create, err: provision.ErrNoSpace, state: "Failed", reason: "NoSpace"},
		"no pool":                   {volume: volume(), step: decide.Create, err: provision.ErrPoolMissing, state: "Failed", reason: "PoolMissing"},
		"no class":                  {volume: volume(), step: decide.Create, err: entries.ErrNoClass, state: "Failed", reason: "PoolMissing"},
		"a pool of no class":        {volume: volume(), step: decide.Create, err: entries.ErrWrongPool, state: "Failed", reason: "PoolMissing"},
		"an impossible wish":        {volume: volume(), step: decide.Create, err: provision.ErrInvalid, state: "Failed", reason: "Invalid"},
		"other data bears the name": {volume: volume(), step: decide.Create, err: provision.ErrConflict, state: "Failed", reason: "Conflict"},
		"poold away":                {volume: volume(), step: decide.Create, err: provision.ErrUnavailable, state: "Failed", reason: "ProvisionerError", retried: true},
		"a hanging tool":            {volume: volume(), step: decide.Create, err: context.DeadlineExceeded, state: "Failed", reason: "ProvisionerError", retried: true},
		"an error of no class":      {volume: volume(), step: decide.Create, err: errors.New("exit status 5"), state: "Failed", reason: "ProvisionerError", retried: true},
		"no room to expand leaves the replica ready": {
			volume: volume(of("9Gi")), step: decide.Expand, record: carved(), err: provision.ErrNoSpace, state: "Ready", reason: "NoSpace", capacity: gib},
		"an open device cannot go": {
			volume: volume(deleting, saying(ready("1Gi", "1Gi"))), step: decide.Remove, record: carved(), err: provision.ErrInUse,
			state: "Failed", reason: "InUse", retried: true, capacity: gib},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("doing it: %w", tc.err)
			got := refusal(placed.Look(tc.volume, here, Facts{Record: tc.record}), tc.step, entries.Reason(err), "node n1: "+err.Error()).Entry
			if !sameState(got, tc.state, tc.reason) {
				t.Errorf("entry %+v; want %s, %s", got, tc.state, tc.reason)
			}
			if entries.Retried(got.Reason) != tc.retried {
				t.Errorf("retried soon: %v; want %v", !tc.retried, tc.retried)
			}
			if !strings.HasPrefix(got.Message, "node n1: ") || !strings.Contains(got.Message, "doing it") {
				t.Errorf("message %q names neither the node nor the cause", got.Message)
			}
			if tc.step != decide.Remove && !entries.SameQuantity(got.Requested, &tc.volume.Spec.Capacity) {
				t.Errorf("requested %v does not answer the wish", got.Requested)
			}
			if (got.Capacity == nil) != (tc.capacity == 0) || got.Capacity != nil && got.Capacity.Value() != tc.capacity {
				t.Errorf("capacity %v; want %d", got.Capacity, tc.capacity)
			}
		})
	}
}
