package ledger_test

import (
	"testing"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/quantity"
)

func TestRefusalsAreToldInPeoplesUnits(t *testing.T) {
	sick := volumeGroup("sick", 20*gib, "fragile")
	sick.Health = ledger.Degraded
	of := func(class string, bytes int64) ledger.Demand {
		return ledger.Demand{Owner: ledger.Claim("o"), Class: class, Bytes: bytes}
	}
	tests := map[string]struct {
		demands []ledger.Demand
		told    string
	}{
		"the second of two that is too large":     {[]ledger.Demand{claimed("c", 11*gib), of("small", 3*gib)}, "pool small has 2Gi free, 3Gi asked"},
		"the first of two that is too large":      {[]ledger.Demand{of("small", 3*gib), claimed("c", 2*gib)}, "pool small has 2Gi free, 3Gi asked"},
		"a pool that takes nothing new":           {[]ledger.Demand{of("fragile", 30*gib)}, "pool sick: the pool is unhealthy and takes nothing new"},
		"a class that no pool serves":             {[]ledger.Demand{of("unserved", gib)}, "the node has no pool of the class"},
		"the first of several that are not valid": {[]ledger.Demand{claimed("c", 0), of("nowhere", gib)}, "the requested size is not valid"},
		"what fits needs no words":                {[]ledger.Demand{claimed("c", gib)}, ""},
		"one that is too large":                   {[]ledger.Demand{claimed("c", 11*gib)}, "pool vg0 has 10Gi free, 11Gi asked; pool vg1 has 4Gi free, 11Gi asked"},
		"several that do not fit together":        {[]ledger.Demand{claimed("c", 10*gib), claimed("d", 3*gib), claimed("e", 2*gib)}, "not enough free space for all of the pod's volumes together: pool vg0 has 10Gi free, pool vg1 has 4Gi free; 10Gi + 3Gi + 2Gi asked"},
		"a class that is not there":               {[]ledger.Demand{{Owner: ledger.Claim("c"), Class: "nowhere", Bytes: gib}}, "the PoolClass does not exist"},
		"one that is valid, and then is not":      {[]ledger.Demand{claimed("c", gib), claimed("c", 0)}, "the requested size is not valid"},
		"a size that is none":                     {[]ledger.Demand{claimed("c", 0)}, "the requested size is not valid"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", 4*gib), volumeGroup("small", 2*gib, "small"), sick))
			for _, class := range []string{"small", "fragile", "unserved"} {
				c.class(ledger.Class{Name: class})
			}
			r, _ := c.Request(ledger.RequestOptions{Pod: "p"}, test.demands...)
			if got := c.Node("n1").Explain(r).Message(quantity.Bytes); got != test.told {
				t.Errorf("got  %q\nwant %q", got, test.told)
			}
		})
	}
}

func TestOfAClaimThatIsHeldElsewhereNoPoolHasMoreToSay(t *testing.T) {
	c := newCluster(t, report("n1", volumeGroup("vg0", 10*gib), volumeGroup("vg1", gib)), report("n2", volumeGroup("vg0", 10*gib)))
	c.reserve("p", "n2", claimed("c", 2*gib))
	got := c.Node("n1").Explain(c.request("q", claimed("c", 2*gib))).Message(quantity.Bytes)
	if want := ledger.HeldElsewhere.Message(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
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

func TestAnUnusedGrantEndsWithTheNextLookAtTheVolume(t *testing.T) {
	c := newCluster(t)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	c.Grant("pvc-c", 6*gib)
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	c.wantUsed("n1", "vg0", 2*gib)
}

func TestARefusedGrantNamesTheNodeAndPoolThatCannotAnswer(t *testing.T) {
	c := newCluster(t)
	if o := c.Grant("pvc-c", gib); o.Reason != ledger.NotReported || o.Node != "" {
		t.Errorf("an unknown volume: %+v", o)
	}
	c.ObserveVolume(volume("c", "n1", "vg0", 2*gib, ledger.Ready))
	silent := report("n1", volumeGroup("vg0", 10*gib))
	silent.Ready = false
	c.report(silent)
	o := c.Grant("pvc-c", 3*gib)
	if o.Reason != ledger.NodeNotReady || o.Node != "n1" || o.Message(quantity.Bytes) != ledger.NodeNotReady.Message() {
		t.Errorf("a silent node: %+v", o)
	}
	c.ObserveNodeGone("n1")
	if o := c.Grant("pvc-c", 3*gib); o.Reason != ledger.NotReported || o.Node != "n1" {
		t.Errorf("a node that is gone: %+v", o)
	}
	c.report(report("n1"))
	if o := c.Grant("pvc-c", 3*gib); o.Reason != ledger.NotServed || o.Node != "n1" || o.Pool != "vg0" {
		t.Errorf("a pool that is gone: %+v", o)
	}
	c.ObserveVolumeGone("pvc-c", 0)
	c.ObservePV(ledger.PVObject{Name: "pv", Volume: "pvc-c"})
	if o := c.Grant("pvc-c", 3*gib); o.Reason != ledger.NotReported || o.Node != "" {
		t.Errorf("a volume that is gone: %+v", o)
	}
	unsynced := ledger.New()
	if o := unsynced.Grant("pvc-c", gib); o.Reason != ledger.NotSynced {
		t.Errorf("a ledger that has not seen all: %+v", o)
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
	c.reserve("q", "n1", claimed("c", gib))
	c.Unreserve("p", "n1")
	known(false)
	podBound(c)
	known(false)
	for name, do := range map[string]func(*cluster){
		"bound elsewhere": func(c *cluster) { c.ObservePod(ledger.PodObject{UID: "p", Node: "n2"}) },
		"bound, and its Volume is there": func(c *cluster) {
			podBound(c)
			c.ObserveVolume(volume("c", "n1", "vg0", gib, ledger.Ready))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.reserve("p", "n1", claimed("c", gib))
			do(c)
			if c.KnowsPod("p") {
				t.Error("the pod holds nothing and is known")
			}
		})
	}
}
