package ledger_test

import (
	"testing"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/quantity"
)

func TestRefusalsAreToldInPeoplesUnits(t *testing.T) {
	tests := map[string]struct {
		demands []ledger.Demand
		told    string
	}{
		"what fits needs no words":         {[]ledger.Demand{claimed("c", gib)}, ""},
		"one that is too large":            {[]ledger.Demand{claimed("c", 11*gib)}, "pool vg0 has 10Gi free, 11Gi asked; pool vg1 has 4Gi free, 11Gi asked"},
		"several that do not fit together": {[]ledger.Demand{claimed("c", 10*gib), claimed("d", 3*gib), claimed("e", 2*gib)}, "not enough free space for all of the pod's volumes together: pool vg0 has 10Gi free, pool vg1 has 4Gi free; 10Gi + 3Gi + 2Gi asked"},
		"a class that is not there":        {[]ledger.Demand{{Owner: ledger.Claim("c"), Class: "nowhere", Bytes: gib}}, "the PoolClass does not exist"},
		"a size that is none":              {[]ledger.Demand{claimed("c", 0)}, "the requested size is not valid"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 4*gib)))
			r, _ := c.Request(ledger.RequestOptions{Pod: "p"}, test.demands...)
			if got := c.Node("n1").Explain(r).Message(quantity.Bytes); got != test.told {
				t.Errorf("got  %q\nwant %q", got, test.told)
			}
		})
	}
}

func TestAGrantIsSetAsideAtOnceAndNothingBeyondTheRoom(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	if o := c.Grant("pvc-c", 6*gib); o != (ledger.Obstacle{}) {
		t.Fatalf("refused: %+v", o)
	}
	c.wantUsed("n1", "vg0", 6*gib)
	c.wantGranted(6 * gib)

	o := c.Grant("pvc-c", 11*gib)
	if o.Reason != ledger.NoRoom || o.Need != 5*gib || o.Free != 4*gib || o.Message(quantity.Bytes) != "pool vg0 has 4Gi free, 5Gi more asked" {
		t.Errorf("got %+v: %s", o, o.Message(quantity.Bytes))
	}
	c.wantUsed("n1", "vg0", 6*gib)

	grown := volume("c", "n1", "vg0", 6*gib, ledger.Ready)
	c.ObserveVolume(grown)
	c.wantUsed("n1", "vg0", 6*gib)
}

func TestAGrantThatNobodyUsedEndsWithTheNextLookAtTheVolume(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	c.Grant("pvc-c", 6*gib)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	c.wantUsed("n1", "vg0", 2*gib)
}

func TestAGrantSaysWhoCannotAnswer(t *testing.T) {
	c := newCluster(t)
	if o := c.Grant("pvc-c", gib); o.Reason != ledger.NotReported || o.Node != "" {
		t.Errorf("an unknown volume: %+v", o)
	}
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	silent := report("n1", volumeGroup("vg0", 10*gib))
	silent.Ready = false
	c.report(silent)
	if o := c.Grant("pvc-c", 3*gib); o.Reason != ledger.NodeNotReady || o.Node != "n1" {
		t.Errorf("a silent node: %+v", o)
	}
}

func TestAPodIsKnownWhileItHoldsSomething(t *testing.T) {
	c := newCluster(t)
	known := func(want bool) {
		t.Helper()
		if got := c.KnowsPod("p"); got != want {
			t.Errorf("known is %v", got)
		}
	}
	known(false)
	c.reserve("p", "n1", claimed("c", gib))
	known(true)
	c.Unreserve("p", "n1")
	known(false)
}
