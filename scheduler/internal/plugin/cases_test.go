package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule/cases"
)

// TestThePluginAnswersEveryCase holds the plugin to the table that all forms of
// the scheduler are held to.
func TestThePluginAnswersEveryCase(t *testing.T) {
	for name, test := range cases.All() {
		t.Run(name, func(t *testing.T) {
			for node, want := range test.Nodes {
				answerCase(t, test, node, want)
			}
			if test.Unready != "" {
				p := &Plugin{Book: test.Book(), Reader: test.Reader(), Refusals: NewRefusals(func() {})}
				_, status := p.PreFilter(t.Context(), framework.NewCycleState(), test.Pod, nil)
				if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), test.Unready) {
					t.Errorf("got %v, want a refusal with %q", status, test.Unready)
				}
			}
		})
	}
}

// answerCase takes the pod as far as Reserve on one node, with a ledger of its own.
func answerCase(t *testing.T, test cases.Case, name string, want cases.Answer) {
	t.Helper()
	book := test.Book()
	p := &Plugin{Book: book, Reader: test.Reader(), Refusals: NewRefusals(func() {})}
	state := framework.NewCycleState()
	phrase := why(want.Reason)
	if want.Told != "" {
		phrase = want.Told
	}
	if _, status := p.PreFilter(t.Context(), state, test.Pod, nil); !status.IsSuccess() && !status.IsSkip() {
		if want.Reason == ledger.Fits || !strings.Contains(status.Message(), phrase) {
			t.Errorf("no node fits: %v, and node %s should say %q", status, name, phrase)
		}
		return
	}
	info := framework.NewNodeInfo()
	info.SetNode(&corev1.Node{})
	info.Node().Name = name
	status := p.Filter(t.Context(), state, test.Pod, info)
	if want.Reason != ledger.Fits {
		if status.IsSuccess() || !strings.Contains(status.Message(), phrase) {
			t.Errorf("node %s: %v, want %q", name, status, phrase)
		}
		return
	}
	if !status.IsSuccess() {
		t.Errorf("node %s: %v, want it to fit", name, status)
	}
	if status := p.Reserve(t.Context(), state, test.Pod, name); !status.IsSuccess() {
		t.Errorf("reserving on node %s: %v", name, status)
	}
	c := read(state)
	if c == nil {
		return // nothing of Berth's is wanted
	}
	for _, w := range c.want.Wanted {
		pool, held := book.Held(w.Demand.Owner, name)
		if volume := cases.VolumeOf(w.Demand.Owner); held && pool != want.Pools[volume] {
			t.Errorf("volume %s is held in %s of node %s, want %s", volume, pool, name, want.Pools[volume])
		}
	}
}
