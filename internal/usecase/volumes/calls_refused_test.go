package volumes_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/volumes"
	"berth.dev/berth/internal/usecase/volumetest"
)

// unready is a node whose agent says that it is not ready, and why.
func unready(name, why string) *v1alpha1.StorageNode {
	n := storageNode(name)
	n.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: why}}
	return n
}

func TestARefusalTellsOfTheNodesThatMatter(t *testing.T) {
	useless := storageNode("n")
	useless.Status.Pools = useless.Status.Pools[1:]
	silent := func(s *stage) {
		for name := range s.nodes {
			s.nodes[name] = "is silent"
		}
	}
	for name, test := range map[string]struct {
		nodes   volumetest.Nodes
		objects []client.Object
		prepare func(s *stage)
		told    string
		allowed []string
	}{
		"no node has reported": {volumetest.Nodes{}, nil, silent, "no node has reported its pools yet: is the berth-agent DaemonSet running?", nil},
		"the refusal names only nodes that serve the class": {
			volumetest.Nodes{"n": "", "m": ""}, []client.Object{useless}, silent, "node m: is silent", nil,
		},
		"the refusal names the first of many nodes": {
			volumetest.Nodes{"a": "", "b": "", "c": "", "d": "", "e": ""}, nil, silent, "node a: is silent; node b: is silent; node c: is silent; and 2 more nodes", nil,
		},
		"the refusal names all of three nodes": {volumetest.Nodes{"a": "", "b": "", "c": ""}, nil, silent, "node a: is silent; node b: is silent; node c: is silent", nil},
		"the refusal tells the problems of the agents": {
			volumetest.Nodes{"n": "", "m": ""}, []client.Object{unready("n", "lvm is broken"), unready("m", "")}, func(*stage) {},
			"node m: is not ready; node n: is not ready: lvm is broken", nil,
		},
		"the refusal tells the reason of the ledger when the agents have no problem": {
			volumetest.Nodes{"n": "is silent"}, nil, func(s *stage) { s.nodes["n"] = "" }, "node n: is not ready", nil,
		},
		"the refusal names each node once": {volumetest.Nodes{"n": "", "m": ""}, nil, silent, "node m: is silent; node n: is silent", []string{"n", "m", "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, test.nodes, test.objects...)
				test.prepare(s)
				r := request(slices.Clone(test.allowed)...)
				_, err := s.Create(within(t), r)
				expect(t, err, volumes.ErrUnplaceable)
				if err != nil && err.Error() != test.told {
					t.Errorf("told %q, want %q", err, test.told)
				}
				if !slices.Equal(r.Topology.Allowed, test.allowed) {
					t.Errorf("the caller's list is changed to %v", r.Topology.Allowed)
				}
				s.wroteOnly()
			})
		})
	}
}

func TestALedgerThatHasNotHeardOfEverythingPromisesNothing(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Service = volumes.New(lagging.Unread{Client: s.Client(), Kind: &s.unread, Err: errBroken}, lagging.Unread{Client: s.Others(), Kind: &s.unread, Err: errBroken}, some{s.nodes, s.shut}, schedule.NewBook(), &volumes.Watchers{})
		_, err := s.Create(within(t), request())
		expect(t, err, provision.ErrUnavailable)
		if err != nil && !strings.Contains(err.Error(), "not synced") {
			t.Errorf("told %q", err)
		}
		s.wroteOnly()
	})
}

func TestALimitHoldsForTheSizeThatThePoolCarves(t *testing.T) {
	for name, test := range map[string]struct {
		limit int64
		class error
	}{
		"the limit is above the carved size": {gi + volumetest.Mi, nil},
		"the limit is below the carved size": {gi + 2, volumes.ErrOutOfRange},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				r := request("n")
				r.Size = volumes.Size{Required: gi + 1, Limit: test.limit}
				_, err := s.Create(within(t), r)
				expect(t, err, test.class)
			})
		})
	}
}
