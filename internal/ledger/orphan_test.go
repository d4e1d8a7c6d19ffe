package ledger_test

import (
	"testing"

	"berth.dev/berth/internal/ledger"
)

func TestWhereAnOrphanIs(t *testing.T) {
	listing := func(node string, items ...ledger.Item) ledger.Report {
		p := volumeGroup("vg0", 10*gib)
		p.Inventory = items
		return report(node, volumeGroup("empty", gib), p)
	}
	orphan := ledger.Item{Owner: ledger.Volume("pvc-1"), Taken: gib, Orphan: true}
	known := ledger.Item{Owner: ledger.Volume("pvc-1"), Taken: gib}
	for name, test := range map[string]struct {
		reports []ledger.Report
		node    string // empty: nowhere
	}{
		"no node lists it":                   {reports: []ledger.Report{listing("n1")}},
		"a node lists it as what will go":    {reports: []ledger.Report{listing("n1", known)}},
		"a node lists another one":           {reports: []ledger.Report{listing("n1", ledger.Item{Owner: ledger.Volume("pvc-2"), Orphan: true})}},
		"a node lists a snapshot":            {reports: []ledger.Report{listing("n1", ledger.Item{Owner: ledger.VolumeSnapshot("pvc-1"), Orphan: true})}},
		"a node lists it":                    {reports: []ledger.Report{listing("n1"), listing("n2", orphan)}, node: "n2"},
		"two nodes list it":                  {reports: []ledger.Report{listing("n2", orphan), listing("n1", orphan)}, node: "n1"},
		"a node that listed it does no more": {reports: []ledger.Report{listing("n1", orphan), listing("n1")}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, test.reports...)
			node, pool, found := c.Orphan(ledger.Volume("pvc-1"))
			if found != (test.node != "") || node != test.node || found && pool != "vg0" {
				t.Errorf("%q, %q, %v; want %q", node, pool, found, test.node)
			}
		})
	}
}
