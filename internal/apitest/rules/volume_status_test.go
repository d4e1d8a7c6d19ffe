package rules

import (
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	entryLeaves = "an entry of status.replicas leaves only from state Gone"
	readyEntry  = "a ready replica is in state Ready and reports its capacity"
)

type statusCase struct {
	before  []change // writes that lead to the state before
	change  change
	refusal string // empty: allowed
}

var entryCases = map[string]statusCase{
	"an entry of a ready replica stays": {
		before: []change{ready("n1", "n2")}, change: dropped("n2"), refusal: entryLeaves},
	"an entry of a failed replica stays": {
		before: []change{failed("n1")}, change: dropped("n1"), refusal: entryLeaves},
	"an entry does not leave with the list": {
		before: []change{ready("n1")}, refusal: entryLeaves,
		change: func(v *v1alpha1.Volume) { v.Status.Replicas = nil }},
	"an entry does not leave with the status": {
		before: []change{ready("n1")}, refusal: entryLeaves,
		change: func(v *v1alpha1.Volume) { v.Status = v1alpha1.VolumeStatus{} }},
	"one write does not replace an entry by another": {
		before: []change{ready("n1")}, change: all(dropped("n1"), ready("n9")), refusal: entryLeaves},
	"an entry leaves from gone": {
		before: []change{ready("n1", "n2"), gone("n2")}, change: dropped("n2")},
	"a ready entry does not leave together with a gone entry": {
		before: []change{ready("n1", "n2"), gone("n2")}, change: all(dropped("n2"), dropped("n1")), refusal: entryLeaves},
	"a node may hold a replica again after the entry left": {
		before: []change{ready("n1"), gone("n1"), dropped("n1")}, change: ready("n1")},
	"a failed replica is not ready": {
		before: []change{ready("n1")}, refusal: readyEntry,
		change: entry("n1", func(r *v1alpha1.ReplicaStatus) { r.State = v1alpha1.ReplicaFailed })},
	"a replica that is being copied becomes ready": {
		before: []change{all(ready("n1"), copying("n1"))}, change: ready("n1")},
	"a replica that is being copied is not ready": {
		before: []change{ready("n1")}, refusal: readyEntry,
		change: entry("n1", func(r *v1alpha1.ReplicaStatus) { r.State = v1alpha1.ReplicaCopying })},
	"a ready replica reports a size": {
		before: []change{ready("n1")}, refusal: readyEntry,
		change: entry("n1", func(r *v1alpha1.ReplicaStatus) { r.Capacity = nil })},
	"a node has one entry": {
		refusal: "Duplicate value",
		change: func(v *v1alpha1.Volume) {
			ready("n1")(v)
			v.Status.Replicas = append(v.Status.Replicas, v.Status.Replicas[0])
		}},
	"a list of entries is bounded": {
		change: ready("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"), refusal: "must have at most 8 items"},
	"a message is bounded": {
		refusal: "may not be more than 1024 bytes",
		change:  entry("n1", func(r *v1alpha1.ReplicaStatus) { r.Message = strings.Repeat("x", 1025) })},
	"an unknown state is refused": {
		refusal: `Unsupported value: "Purple"`,
		change:  entry("n1", func(r *v1alpha1.ReplicaStatus) { r.State = "Purple" })},
}

func TestAVolumesStatusMovesOnlyAsItsRulesAllow(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range entryCases {
		t.Run(name, func(t *testing.T) {
			v := live(t, env.Client, newVolume(t), tc.before...)
			before := v.DeepCopy()
			tc.change(v)
			err := env.Client.Status().Update(t.Context(), v)
			expect(t, err, tc.refusal)
			if tc.refusal != "" {
				unchanged(t, env.Client, before)
			}
		})
	}
}
