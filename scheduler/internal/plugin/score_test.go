package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// best runs PreScore and Score and returns the best node, or "skip".
func (c *cluster) best(t *testing.T, pod *corev1.Pod, holders ...schedule.Holder) string {
	t.Helper()
	state := c.begin(t, pod)
	read(state).want.Holders = append(read(state).want.Holders, holders...)
	infos := []fwk.NodeInfo{c.info("n1"), c.info("n2")}
	if status := c.RunPreScorePlugins(t.Context(), state, pod, infos); !status.IsSuccess() {
		t.Fatal(status)
	}
	if state.GetSkipScorePlugins().Has(Name) {
		return "skip"
	}
	scores, status := c.RunScorePlugins(t.Context(), state, pod, infos)
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	if scores[0].TotalScore == scores[1].TotalScore {
		return "either"
	}
	if scores[0].TotalScore > scores[1].TotalScore {
		return scores[0].Name
	}
	return scores[1].Name
}

func TestScore(t *testing.T) {
	standby, primary := schedule.Holder{Volume: "v", Node: "n2", Standing: schedule.Standby}, schedule.Holder{Volume: "v", Node: "n1", Standing: schedule.Primary}
	unfit := schedule.Holder{Volume: "w", Node: "n1", Standing: schedule.Unfit}
	tests := map[string]struct {
		strategy ledger.Strategy
		claims   []string
		holders  []schedule.Holder
		want     string
	}{
		"spread goes where more stays free":                   {claims: []string{"a"}, want: "n2"},
		"binpack goes where less stays free":                  {claims: []string{"a"}, strategy: ledger.Binpack, want: "n1"},
		"a node that holds something comes first":             {claims: []string{"a"}, holders: []schedule.Holder{primary}, want: "n1"},
		"the primary comes before a standby":                  {holders: []schedule.Holder{standby, primary}, want: "n1"},
		"a node is as good as the worst replica that it has":  {holders: []schedule.Holder{standby, primary, unfit}, want: "n2"},
		"one node that holds everything leaves nothing to do": {holders: []schedule.Holder{primary}, want: "skip"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, node("n1", 10*gi), node("n2", 40*gi))
			c.Strategy = test.strategy
			c.bound("data", "n1") // a pod that wants nothing would be skipped
			for _, claim := range test.claims {
				c.claim(claim, 5*gi)
			}
			pod := podWith("p", append(test.claims, "data")...)
			c.objects.volumes["pvc-uid-data"].Status.Replicas = nil // it tells of no holder itself
			if got := c.best(t, pod, test.holders...); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestANodeOnWhichAnEarlierAttemptHasMadeTheVolumeComesFirst(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi), node("n2", 40*gi))
	c.bound("a", "n1") // makes the Volume
	c.claim("a", gi)   // and an unbound claim again
	if got := c.best(t, podWith("p", "a")); got != "n1" {
		t.Errorf("got %s, want n1, where the Volume is", got)
	}
}
