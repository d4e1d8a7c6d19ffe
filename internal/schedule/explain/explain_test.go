package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/schedule/cases"
)

func explained(t *testing.T, name string) (*cases.Case, string) {
	t.Helper()
	c, known := cases.All()[name]
	if !known {
		t.Fatalf("there is no case %q", name)
	}
	report, err := Cluster{&c.Lists, &c}.Pod(t.Context(), c.Pod)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report.Write(&out, "pod shop/web"); err != nil {
		t.Fatal(err)
	}
	return &c, out.String()
}

func TestAPodIsExplainedNodeByNode(t *testing.T) {
	_, got := explained(t, "volumes of others are in the way")
	want := `pod shop/web wants room for:
  VOLUME   CLASS  SIZE  NODE CHOSEN
  claim 1  fast   2Gi   -

NODE   VOLUME   POOL  TOTAL  FOREIGN  USED  FREE  NEEDS  ANSWER
large  claim 1  vg0   20Gi   0        0     20Gi  2Gi    Fits
small  claim 1  vg0   4Gi    0        3Gi   1Gi   2Gi    NoRoom

large: fits, claim 1 in vg0
small: does not fit: pool vg0 has 1Gi free, 2Gi asked
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheExplanationNamesTheReasonInEachCase(t *testing.T) {
	for name, told := range map[string]string{
		"several claims are fitted together":                "n: does not fit: not enough free space for all of the pod's volumes together: pool vg0 has 5Gi free; 3Gi + 3Gi asked",
		"an inline volume counts beside a claim":            "inline scratch  fast   3Gi",
		"a node whose agent is silent takes nothing new":    "n: takes nothing new: silent for 41s",
		"a claim that does not wait has to be bound first":  `pod shop/web cannot be placed anywhere now: claim "1" is to be bound before`,
		"a pod without volumes of ours goes anywhere":       "pod shop/web has no volumes of Berth's.",
		"a pool of another class is not used":               "No node has a pool for it (1 nodes report other pools).",
		"a restored claim goes to the node of its snapshot": `large: does not fit: claim "1" is made from snapshot "7", which is on node small`,
		"a snapshot that is not ready":                      `pod shop/web cannot be placed anywhere now: claim "1" is made from snapshot "7", which is not ready to use.`,
		"a degraded pool takes nothing new":                 "n: does not fit: pool vg0: the pool is unhealthy and takes nothing new",
	} {
		if _, got := explained(t, name); !strings.Contains(got, told) {
			t.Errorf("%s: %q lacks %q", name, got, told)
		}
	}
}

func TestAClaimIsExplainedWithoutAPod(t *testing.T) {
	c := cases.All()["one claim goes where there is room"]
	cluster := Cluster{&c.Lists, &c}
	report, err := cluster.Claim(t.Context(), "shop", "1")
	if err != nil || len(report.Nodes) != 2 || !report.Nodes[0].Verdict.Fits() || report.Nodes[1].Verdict.Fits() {
		t.Errorf("got %+v, %v", report, err)
	}
	if _, err := cluster.Claim(t.Context(), "shop", "9"); err == nil || !strings.Contains(err.Error(), "claim shop/9 does not exist") {
		t.Errorf("a claim that is not there: %v", err)
	}
}
