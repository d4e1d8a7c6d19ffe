package rounds

import (
	"encoding/json"
	"strings"
	"testing"

	"berth.dev/berth/test/scrape"
)

func TestThePageLeavesNoRoundOut(t *testing.T) {
	var lines strings.Builder
	for _, r := range []Round{
		{Seed: 1, Number: 1, Fault: "power off", Victim: "node1", Moved: true, Rebooted: true, Gap: 20, Back: 70,
			Steps: []Step{{Fenced, 8}, {Written, 20}}},
		{Seed: 1, Number: 2, Fault: "power off", Victim: "node2", Moved: true, Gap: 30, Back: 80,
			Steps: []Step{{Fenced, 10}, {Written, 30}}},
		{Seed: 1, Number: 3, Fault: "agent killed", Victim: "node2", Gap: 0.5, Back: 2},
		{Seed: 1, Number: 4, Fault: "agent killed", Victim: "node2", Failed: "no write was acknowledged"},
		{Seed: 1, Number: 5, Fault: "network cut", Victim: "node2", Harm: []string{"record 7 is lost"}},
		{Seed: 1, Number: 6, Fault: Planned, Victim: "node2", Moved: true, Gap: 4, Steps: []Step{{Released, 1}, {Written, 4}}},
	} {
		if err := json.NewEncoder(&lines).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Read(strings.NewReader(lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	Page(&page, all, []Round{{Fault: PlainPod, Gap: 3}, {Fault: Stock, Gap: 700}, {Fault: Stock, Number: 2, Failed: "it did not come back"}})
	for _, want := range []string{
		"6 rounds. 1 of them failed. In 1 of them the disk showed",
		"| a write is acknowledged                        |      2 | 20.0 | 30.0 | 30.0 |",
		"| the node has let go of the volume |      1 | 1.00 | 1.00 | 1.00 |",
		"| a plain pod, from created to running                        |      1 | 3.00 | 3.00 |      0 |",
		"| Berth, planned move                                         |      1 | 4.00 | 4.00 |      0 |",
		"| Berth, power off                                            |      2 | 20.0 | 30.0 |      0 |",
		"| stock Kubernetes, power off                                 |      2 |  700 |  700 |      1 |",
		"seed 0, round 2, stock Kubernetes, power off: it did not come back",
		"| power off    |      2 |     2 |      1 |    20.0 |    30.0 |            70.0 |            80.0 |      0 |",
		"| agent killed |      2 |     0 |      0 |   0.500 |   0.500 |            2.00 |            2.00 |      1 |",
		"| the node is fenced: it provably writes no more |      2 | 8.00 | 10.0 | 10.0 |",
		"seed 1, round 4, agent killed: no write was acknowledged",
		"seed 1, round 5, network cut: record 7 is lost",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not have %q:\n%s", want, page.String())
		}
	}
}

func TestTheNativePageCountsBothFaults(t *testing.T) {
	var page strings.Builder
	Native(&page, []Round{
		{Seed: 1, Number: 1, Fault: "node lost", Victim: "node1", Moved: true, Steps: []Step{{Suspected, 2}, {Staged, 3}}, Changes: scrape.Counts{"volumes": 5, "leases": 9}},
		{Seed: 1, Number: 2, Fault: "both lost", Victim: "node2", Moved: true, Steps: []Step{{Suspected, 2.5}, {Staged, 5}}, Changes: scrape.Counts{"volumes": 6, "volumes, refused": 1}},
		{Seed: 1, Number: 3, Fault: "node lost", Victim: "node1", Failed: "no write was acknowledged"},
		{Seed: 1, Number: 3, Fault: Planned, Victim: "node1", Moved: true, Steps: []Step{{Released, 0.25}, {Staged, 0.5}}},
	}, []Requests{
		{Nodes: 2, Seconds: 100, Changes: scrape.Counts{"leases": 66}, Leases: scrape.Counts{"berth-system/berth-guard-a": 10, "berth-system/berth-guard-b": 10, "berth-system/berth-agent-a": 5, "berth-system/berth-disk-controller": 40, "kube-node-lease/a": 1}},
		{Nodes: 2, Open: "berth-guard-b", Seconds: 100, Changes: scrape.Counts{"leases": 75, "events": 10}, Leases: scrape.Counts{"berth-system/berth-guard-a": 10, "berth-system/berth-guard-b": 20, "berth-system/berth-agent-a": 5, "berth-system/berth-disk-controller": 40}},
	})
	for _, want := range []string{
		"| volumes          |      2 |     5 |   5 |    6 |",
		"| volumes, refused |      2 |     0 |   0 |    1 |",
		"| no epoch is open            |   10.0 |   5.00 |        0.45 | 15.4 |",
		"| each node has an open epoch |   20.0 |   5.00 |        0.45 | 25.4 |",
		"4 rounds. 1 of them failed. In 0 of them the disk showed",
		"| node lost    |      1 | 3.00 | 3.00 | 3.00 |",
		"| all rounds   |      2 | 3.00 | 5.00 | 5.00 |",
		"| a controller suspects the node |      2 | 2.00 | 2.50 | 2.50 |",
		"| the volume is staged there        |      1 | 0.500 | 0.500 | 0.500 |",
		"seed 1, round 3, node lost: no write was acknowledged",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not have %q:\n%s", want, page.String())
		}
	}
}

func TestALineThatIsNoRoundIsAnError(t *testing.T) {
	if _, err := Read(strings.NewReader("{}\nno\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}
