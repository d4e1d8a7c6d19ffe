package volumes

import (
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

func TestAnswersToACreate(t *testing.T) {
	const ready, broken, gone = v1alpha1.ReplicaReady, v1alpha1.ReplicaFailed, v1alpha1.ReplicaGone
	tests := map[string]struct {
		volume *v1alpha1.Volume
		state  usecase.State
		class  error
	}{
		"no entry yet":                       {build(gi, wanted("n")), usecase.Waiting, nil},
		"carved":                             {build(gi, wanted("n"), says("n", ready, v1alpha1.ReasonCarved, gi, gi)), usecase.Done, nil},
		"carved larger than asked":           {build(gi, wanted("n"), says("n", ready, v1alpha1.ReasonCarved, gi+4*mi, gi)), usecase.Done, nil},
		"carved for an earlier wish":         {build(2*gi, wanted("n"), says("n", ready, v1alpha1.ReasonCarved, gi, gi)), usecase.Waiting, nil},
		"ready but smaller than asked":       {build(2*gi, wanted("n"), says("n", ready, v1alpha1.ReasonNoSpace, gi, 2*gi)), usecase.Refused, ErrUnplaceable},
		"no room":                            {build(gi, wanted("n"), says("n", broken, v1alpha1.ReasonNoSpace, 0, gi)), usecase.Refused, ErrUnplaceable},
		"no room for an earlier wish":        {build(gi, wanted("n"), says("n", broken, v1alpha1.ReasonNoSpace, 0, 2*gi)), usecase.Waiting, nil},
		"no pool":                            {build(gi, wanted("n"), says("n", broken, v1alpha1.ReasonPoolMissing, 0, gi)), usecase.Refused, ErrUnplaceable},
		"invalid":                            {build(gi, wanted("n"), says("n", broken, v1alpha1.ReasonInvalid, 0, gi)), usecase.Failed, provision.ErrInvalid},
		"conflict":                           {build(gi, wanted("n"), says("n", broken, v1alpha1.ReasonConflict, 0, gi)), usecase.Failed, provision.ErrConflict},
		"a provisioner that fails":           {build(gi, wanted("n"), says("n", broken, v1alpha1.ReasonProvisionerError, 0, gi)), usecase.Failed, provision.ErrUnavailable},
		"a device that is missing":           {build(gi, wanted("n"), says("n", broken, v1alpha1.ReasonDeviceMissing, 0, gi)), usecase.Failed, provision.ErrUnavailable},
		"an unknown reason":                  {build(gi, wanted("n"), says("n", broken, "Novelty", 0, gi)), usecase.Failed, provision.ErrUnavailable},
		"a copy that is under way":           {build(gi, wanted("n"), says("n", v1alpha1.ReplicaCopying, v1alpha1.ReasonCopying, gi, gi)), usecase.Waiting, nil},
		"a provisioner that makes no copies": {build(gi, wanted("n"), says("n", broken, v1alpha1.ReasonUnsupported, 0, gi)), usecase.Failed, provision.ErrUnsupported},
		"gone, from an earlier placement":    {build(gi, wanted("n"), says("n", gone, v1alpha1.ReasonRemoved, 0, gi)), usecase.Waiting, nil},
		"an answer of another node":          {build(gi, wanted("n"), says("m", ready, v1alpha1.ReasonCarved, gi, gi)), usecase.Waiting, nil},
		"an answer to no wish":               {build(gi, wanted("n"), says("n", ready, v1alpha1.ReasonCarved, gi, 0)), usecase.Waiting, nil},
		"an answer without a size":           {build(gi, wanted("n"), says("n", ready, v1alpha1.ReasonCarved, 0, gi)), usecase.Failed, provision.ErrUnavailable},
		"an answer of one node of two": {
			build(gi, wanted("n"), wanted("m"), says("n", ready, v1alpha1.ReasonCarved, gi, gi)), usecase.Waiting, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := created(test.volume)
			if got.State != test.state || !errors.Is(got.Err(), test.class) {
				t.Errorf("got %v %v, want %v %v", got.State, got.Err(), test.state, test.class)
			}
			if err := got.Err(); err != nil && err.Error() != "node n: because" {
				t.Errorf("the message is %q", err)
			}
		})
	}
}

func TestAnswersToAnExpansion(t *testing.T) {
	tests := map[string]struct {
		volume *v1alpha1.Volume
		state  usecase.State
		class  error
	}{
		"grown":           {build(2*gi, wanted("n"), says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, 2*gi, 2*gi)), usecase.Done, nil},
		"not grown yet":   {build(2*gi, wanted("n"), says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, gi, gi)), usecase.Waiting, nil},
		"no room":         {build(2*gi, wanted("n"), says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonNoSpace, gi, 2*gi)), usecase.Failed, ErrOutOfRange},
		"no pool now":     {build(2*gi, wanted("n"), says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonPoolMissing, gi, 2*gi)), usecase.Failed, provision.ErrUnavailable},
		"lvm that failed": {build(2*gi, wanted("n"), says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonProvisionerError, gi, 2*gi)), usecase.Failed, provision.ErrUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := expanded(test.volume)
			if got.State != test.state || !errors.Is(got.Err(), test.class) {
				t.Errorf("got %v %v, want %v %v", got.State, got.Err(), test.state, test.class)
			}
		})
	}
}

func TestAVolumeIsCarvedIfANodeMayHoldItsData(t *testing.T) {
	tests := map[string]struct {
		volume *v1alpha1.Volume
		want   bool
	}{
		"no entry":              {build(gi, wanted("n")), false},
		"refused":               {build(gi, wanted("n"), says("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace, 0, gi)), false},
		"ready":                 {build(gi, wanted("n"), says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, gi, gi)), true},
		"being copied":          {build(gi, wanted("n"), says("n", v1alpha1.ReplicaCopying, v1alpha1.ReasonCopying, gi, gi)), true},
		"ready on another node": {build(gi, wanted("n"), says("m", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, gi, gi)), true},
		"device missing":        {build(gi, wanted("n"), says("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonDeviceMissing, 0, gi)), true},
		"cannot be removed":     {build(gi, says("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonInUse, gi, 0)), true},
		"adopted":               {build(gi, wanted("n"), func(v *v1alpha1.Volume) { v.Spec.Adopted = true }), true},
		"foreign data found":    {build(gi, wanted("n"), says("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonConflict, 0, gi)), true},
		"gone":                  {build(gi, says("n", v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved, gi, 0)), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Carved(test.volume); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAVolumeIsAsLargeAsItsSmallestReplica(t *testing.T) {
	has := func(node string, state v1alpha1.ReplicaState, size int64) func(*v1alpha1.Volume) {
		return says(node, state, v1alpha1.ReasonCarved, size, gi)
	}
	const ready, gone = v1alpha1.ReplicaReady, v1alpha1.ReplicaGone
	for name, test := range map[string]struct {
		volume *v1alpha1.Volume
		want   int64
	}{
		"no node":                               {build(gi), 0},
		"a single replica":                      {build(gi, wanted("n"), has("n", ready, gi)), gi},
		"a replica that is not wanted any more": {build(gi, has("n", ready, gi)), 0},
		"a gone replica":                        {build(gi, wanted("n"), has("n", gone, gi)), 0},
		"a replica without a size":              {build(gi, wanted("n"), has("n", ready, 0)), 0},
		"the second replica is smaller":         {build(gi, wanted("n"), wanted("m"), has("n", ready, 2*gi), has("m", ready, gi)), gi},
		"the first replica is smaller":          {build(gi, wanted("n"), wanted("m"), has("n", ready, gi), has("m", ready, 2*gi)), gi},
		"the second replica is missing":         {build(gi, wanted("n"), wanted("m"), has("n", ready, gi)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := capacity(test.volume); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestTheCapacityToAskFor(t *testing.T) {
	grown := func(spec, has int64) *v1alpha1.Volume {
		return build(spec, wanted("n"), says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, has, spec))
	}
	tests := map[string]struct {
		volume *v1alpha1.Volume
		size   Size
		want   int64
		class  error
	}{
		"more than the capacity":                 {grown(gi, gi), Size{Required: 2 * gi}, 2 * gi, nil},
		"exactly the capacity":                   {grown(gi, gi), Size{Required: gi}, gi, nil},
		"less than the capacity":                 {grown(gi, gi), Size{Required: mi}, gi, nil},
		"a size within the rounded capacity":     {grown(gi+1, gi+4*mi), Size{Required: gi + 2}, gi + 1, nil},
		"a smaller size after a refusal":         {grown(8*gi, gi), Size{Required: 2 * gi}, 2 * gi, nil},
		"the capacity after a refusal":           {grown(8*gi, gi), Size{Required: gi}, gi, nil},
		"a volume that no node has answered for": {build(2*gi, wanted("n")), Size{Required: gi}, 2 * gi, nil},
		"more than the capacity, within a limit": {grown(gi, gi), Size{Required: 2 * gi, Limit: 3 * gi}, 2 * gi, nil},
		"no size, and no node has answered":      {build(2*gi, wanted("n")), Size{}, 2 * gi, nil},
		"a limit below the capacity":             {grown(gi, gi), Size{Required: mi, Limit: gi - 1}, 0, ErrOutOfRange},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := target(test.volume, test.size)
			if got != test.want || !errors.Is(err, test.class) {
				t.Errorf("got %d, %v, want %d, %v", got, err, test.want, test.class)
			}
		})
	}
}
