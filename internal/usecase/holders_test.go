package usecase

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumetest"
)

// unnamed is the node of a label whose Node was deleted. Away must not be asked about it, so
// these nodes say that it is here.
const unnamed = ""

func TestHoldersAreTheNodesThatMayHaveDataOfAVolume(t *testing.T) {
	nodes := volumetest.Nodes{"n": "", "m": "", "far": "is silent", unnamed: ""}
	tests := map[string]struct {
		volume *v1alpha1.Volume
		want   []string
		labels []string
	}{
		"no node":                              {build(gi), nil, nil},
		"the node that the spec wants":         {build(gi, wanted("n")), []string{"n"}, []string{"n"}},
		"a node that has reported":             {build(gi, says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, gi, gi)), []string{"n"}, []string{"n"}},
		"a node that reports gone has no data": {build(gi, labelled("n"), says("n", v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved, 0, 0)), nil, nil},
		"a wanted node that reports gone has no data and keeps the label": {
			build(gi, wanted("n"), says("n", v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved, 0, 0)), nil, []string{"n"},
		},
		"an earlier node that is away may have data": {build(gi, wanted("n"), labelled("far")), []string{"far", "n"}, []string{"far", "n"}},
		"an earlier node that is there has no data":  {build(gi, wanted("n"), labelled("m")), []string{"n"}, []string{"n"}},
		"a node that does not exist any more may have data": {
			build(gi, labelled("lost")), []string{""}, []string{"lost"},
		},
		"a node that the record of ownership counts": {build(gi, owned("n", v1alpha1.OwnedReady)), []string{"n"}, []string{"n"}},
		"a node whose attachment is on its way out":  {build(gi, owned("n", v1alpha1.OwnedRemoving)), []string{"n"}, []string{"n"}},
		"a node whose attachment is gone":            {build(gi, owned("n", v1alpha1.OwnedGone)), nil, nil},
		"a node that reports gone and that the record counts": {
			build(gi, says("n", v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved, 0, 0), owned("n", v1alpha1.OwnedSyncing)), []string{"n"}, []string{"n"},
		},
		"the label of the wanted node is lost": {
			build(gi, func(v *v1alpha1.Volume) { v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n", Pool: "vg"}} }), []string{"n"}, []string{"n"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.volume.Labels["team"] = "shop"
			var got []string
			for _, holder := range PlacedVolume(test.volume).Holders(nodes) {
				got = append(got, holder.Node)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("holders: %s", diff)
			}
			want := map[string]string{"team": "shop"}
			for _, node := range test.labels {
				want[v1alpha1.ReplicaLabel(node)] = ""
			}
			if diff := cmp.Diff(want, PlacedVolume(test.volume).NodeLabels(nodes)); diff != "" {
				t.Errorf("labels: %s", diff)
			}
		})
	}
}

func TestAnswersToADeletion(t *testing.T) {
	here := volumetest.Nodes{"n": "", "m": "", unnamed: ""}
	away := volumetest.Nodes{"n": "is silent", "m": ""}
	tests := map[string]struct {
		volume *v1alpha1.Volume
		nodes  volumetest.Nodes
		state  State
		class  error
	}{
		"the node has not answered":                               {build(gi, wanted("n"), says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, gi, gi)), here, Waiting, nil},
		"the node was never heard":                                {build(gi, wanted("n")), here, Waiting, nil},
		"the node reports gone, and the object remains":           {build(gi, wanted("n"), says("n", v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved, 0, 0)), here, Waiting, nil},
		"the device is open":                                      {build(gi, wanted("n"), says("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonInUse, gi, 0)), here, Failed, provision.ErrInUse},
		"the node is away":                                        {build(gi, wanted("n"), says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, gi, gi)), away, Done, nil},
		"the node does not exist":                                 {build(gi, wanted("x")), here, Done, nil},
		"a node is away, and another node is there":               {build(gi, wanted("n"), wanted("m")), away, Waiting, nil},
		"a node is there, and another node was deleted":           {build(gi, wanted("n"), labelled("x")), here, Waiting, nil},
		"the only node was deleted":                               {build(gi, labelled("x")), here, Done, nil},
		"an earlier node is away":                                 {build(gi, labelled("n")), away, Done, nil},
		"an earlier node is back":                                 {build(gi, labelled("n")), here, Waiting, nil},
		"a volume without a node waits for the end of the object": {build(gi), here, Waiting, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := PlacedVolume(test.volume).Removed(test.nodes)
			if got.State != test.state || !errors.Is(got.Err(), test.class) {
				t.Errorf("got %v %v, want %v %v", got.State, got.Err(), test.state, test.class)
			}
		})
	}
}

func TestADeletedVolumeWithCopiesWaitsForThoseThatItsRecordCounts(t *testing.T) {
	nodes := volumetest.Nodes{"n": "", "m": ""}
	several := func(v *v1alpha1.Volume) { v.Spec.Replication.Kind = v1alpha1.ReplicationSnapshots }
	deleting := func(v *v1alpha1.Volume) { v.DeletionTimestamp = &metav1.Time{} }
	for name, tc := range map[string]struct {
		volume *v1alpha1.Volume
		want   []string
	}{
		"its copy is there":                      {build(gi, several, deleting, wanted("n"), owned("n", v1alpha1.OwnedReady)), []string{"n"}},
		"its copy is on its way out":             {build(gi, several, deleting, wanted("n"), owned("n", v1alpha1.OwnedRemoving)), []string{"n"}},
		"its copy is gone":                       {build(gi, several, deleting, wanted("n"), owned("n", v1alpha1.OwnedGone)), nil},
		"one copy is gone, the other is not":     {build(gi, several, deleting, wanted("n"), wanted("m"), owned("m", v1alpha1.OwnedReady)), []string{"m"}},
		"it never had a record":                  {build(gi, several, deleting, wanted("n")), nil},
		"it is not deleted and its copy is gone": {build(gi, several, wanted("n"), owned("n", v1alpha1.OwnedGone)), []string{"n"}},
		"it has one copy":                        {build(gi, deleting, wanted("n")), []string{"n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, holder := range PlacedVolume(tc.volume).Holders(nodes) {
				got = append(got, holder.Node)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("holders: %s", diff)
			}
		})
	}
}

// owned is an entry of the record of ownership.
func owned(node string, state v1alpha1.OwnedState) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) {
		v.Status.Ownership = &v1alpha1.Ownership{Replicas: []v1alpha1.OwnedReplica{{Node: node, State: state}}}
	}
}
