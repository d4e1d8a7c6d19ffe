package cases

import (
	"maps"
	"strings"
	"testing"

	"berth.dev/berth/internal/ledger"
)

func TestTheLedgerAnswersEveryCase(t *testing.T) {
	for name, c := range All() {
		t.Run(name, func(t *testing.T) {
			v, err := c.Reader().Read(t.Context(), c.Pod)
			if err != nil {
				t.Fatal(err)
			}
			if c.Unready != "" {
				if v == nil || !strings.Contains(v.Unready, c.Unready) {
					t.Errorf("got %+v", v)
				}
				return
			}
			if v == nil {
				return // the pod wants nothing of ours
			}
			book := c.Book()
			r, _ := book.Request(ledger.RequestOptions{Pod: string(c.Pod.UID)}, v.Demands()...)
			scores := map[string]int64{}
			for node, want := range c.Nodes {
				choices, verdict := book.Node(node).Place(r, nil)
				if verdict.Reason != want.Reason {
					t.Errorf("node %s: %v, want %v", node, verdict.Reason, want.Reason)
				}
				if told := v.Why(verdict) + verdict.Reason.Message(); !strings.Contains(told, want.Told) {
					t.Errorf("node %s: told %q, want %q", node, told, want.Told)
				}
				got := map[string]string{}
				for _, choice := range choices {
					got[VolumeOf(choice.Owner)] = choice.Pool
				}
				if !maps.Equal(got, want.Pools) {
					t.Errorf("node %s: pools %v, want %v", node, got, want.Pools)
				}
				scores[node] = book.Node(node).Score(r)
			}
			for node, score := range scores {
				if c.Best != "" && node != c.Best && score >= scores[c.Best] {
					t.Errorf("node %s has score %d, the best one %d", node, score, scores[c.Best])
				}
			}
		})
	}
}
