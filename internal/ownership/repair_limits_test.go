package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

// later is a promise of an epoch that went on from a point of epoch 1.
func later(e lineage.Epoch, primary string, from lineage.Point, losses ...Loss) Promise {
	return Promise{Epoch: e, Primary: primary, Boot: "boot1", Lineage: lineage.Lineage{{Epoch: e1}, {Epoch: e, From: from}}, Losses: losses}
}

func tells(node string, p Promise) func(*NodeFacts) {
	return answers(node, func(peer *Peer) { peer.Copy.Promise = p })
}

// A record that believes the wrong node gives a writer's data away, and one that believes none forgets its writer.
func TestARecordIsMendedByALaterStateOfItselfAlone(t *testing.T) {
	end, before := at(e1, 3), at(e1, 2)
	stranger := Promise{Epoch: e3, Primary: "c", Lineage: lineage.Lineage{{Epoch: e3}}}
	open := volume(func(v *Volume) { v.Primary.Phase = Active })
	tests := map[string]struct {
		facts *NodeFacts
		want  lineage.Epoch // zero: the record stays
	}{
		"a peer knows the epoch after it":                {on("b", volume(), tells("c", later(e2, "c", end))), e2},
		"this node does":                                 {on("b", volume(), with(func(c *Copy) { c.Promise = later(e2, "b", end) })), e2},
		"the later of two":                               {on("b", volume(), tells("a", later(e3, "a", end)), tells("c", later(e2, "c", end))), e3},
		"in whatever order":                              {on("b", volume(), tells("a", later(e2, "a", end)), tells("c", later(e3, "c", end))), e3},
		"this node's own, later than a peer's":           {on("b", volume(), with(func(c *Copy) { c.Promise = later(e3, "b", end) }), tells("c", later(e2, "c", end))), e3},
		"a promise of another history":                   {on("b", volume(), tells("c", stranger)), lineage.Epoch{}},
		"one of another history, while an epoch is open": {on("b", open, tells("c", stranger)), lineage.Epoch{}},
		"one that went on before the recovery point":     {on("b", volume(), tells("c", later(e2, "c", before))), lineage.Epoch{}},
		"the same, and it knows that loss":               {on("b", volume(), tells("c", later(e2, "c", before, Loss{Epoch: e1, Kept: before, Known: end}))), e2},
		"it knows a loss of another epoch":               {on("b", volume(), tells("c", later(e2, "c", before, Loss{Epoch: e3, Kept: before, Known: end}))), lineage.Epoch{}},
		"it knows a loss down to another point":          {on("b", volume(), tells("c", later(e2, "c", before, Loss{Epoch: e1, Kept: at(e1, 1), Known: end}))), lineage.Epoch{}},
		"the record's epoch was open, and went on":       {on("b", open, tells("c", later(e2, "c", at(e1, 5)))), e2},
		"it is of an earlier epoch":                      {on("b", volume(owned(Released)), tells("c", later(lineage.Epoch{Number: 1, ID: "x"}, "c", end))), lineage.Epoch{}},
		"the only copy's node has nobody to believe":     {on("a", volume(oneCopy), with(func(c *Copy) { c.Promise = later(e2, "a", end) })), lineage.Epoch{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := TendRules.Decide(tt.facts)
			if mended := a.Reason == RecordBehind; mended != (tt.want != lineage.Epoch{}) || mended && (a.Next == nil || a.Next.Epoch != tt.want) {
				t.Errorf("%v, %v: %s", a.Verb, a.Reason, a.Message())
			}
		})
	}
	expect(t, TendRules.Decide(on("d", volume(), tells("c", later(e2, "c", end)))), verdict{Wait, RecordBehind}) // it may not write the record
}

func TestAMendedRecordSaysWhatThePromiseDoes(t *testing.T) {
	end := at(e1, 3)
	loss := Loss{Epoch: e1, Kept: at(e1, 2), Known: end}
	before := volume(func(v *Volume) { v.FenceRequest = FenceRequest{"b", e1} })
	mended := func(v *Volume, edits ...func(*NodeFacts)) *Volume {
		t.Helper()
		a := TendRules.Decide(on("b", v, edits...))
		expect(t, a, verdict{Record, RecordBehind})
		if a.Next == nil {
			t.FailNow()
		}
		return a.Next
	}
	n := mended(before, tells("c", later(e2, "c", at(e1, 2), loss)))
	p := later(e2, "c", at(e1, 2), loss)
	want := Primary{Node: "c", Boot: "boot1", Phase: Preparing}
	if n.Primary != want || n.Clean || n.FenceRequest != (FenceRequest{}) || n.RecoveryPoint != at(e1, 2) || !cmp.Equal(n.Losses, p.Losses) || !cmp.Equal(n.Lineage, p.Lineage) {
		t.Errorf("mended is %+v", n)
	}
	if len(n.Keys) > 0 {
		t.Errorf("a volume of copies has the keys %v", n.Keys)
	}
	for name, tt := range map[string]struct {
		edits []func(*NodeFacts)
		want  Phase
	}{
		"its owner has not opened it":   {[]func(*NodeFacts){tells("c", p)}, Preparing},
		"its owner has opened it":       {[]func(*NodeFacts){tells("c", p), answers("c", func(peer *Peer) { peer.Copy.Opened = e2 })}, Active},
		"its owner does not answer":     {[]func(*NodeFacts){tells("a", p), func(f *NodeFacts) { f.Peers = f.Peers[:1] }}, Active},
		"its owner knows another epoch": {[]func(*NodeFacts){tells("a", p)}, Active},
		"this node is it, and has not":  {[]func(*NodeFacts){with(func(c *Copy) { c.Promise = later(e2, "b", at(e1, 2), loss) })}, Preparing},
		"this node is it, and has":      {[]func(*NodeFacts){with(func(c *Copy) { c.Promise, c.Opened = later(e2, "b", at(e1, 2), loss), e2 })}, Active},
	} {
		if n := mended(before, tt.edits...); n.Primary.Phase != tt.want {
			t.Errorf("%s: it is %v", name, n.Primary.Phase)
		}
	}
	disk := mended(volume(shared), attached(Key{}), tells("c", later(e2, "c", end)))
	if len(disk.Keys) == 0 || disk.Keys[len(disk.Keys)-1] != (Key{Node: "c", Epoch: e2}) || !disk.RecoveryPoint.IsZero() {
		t.Errorf("the keys are %v, and the recovery point %v", disk.Keys, disk.RecoveryPoint)
	}
}

func TestAControllerMendsARecordThatForgotTheOwner(t *testing.T) {
	f := overseeing(volume(), func(f *ControllerFacts) { f.Witnesses = nil }, of("d", func(p *Peer) { p.Copy.Promise = later(e2, "d", at(e1, 3)) }))
	a := OverseeRules.Decide(f)
	expect(t, a, verdict{Record, RecordBehind})
	if e, has := a.Next.Replica("d"); !has || e.State != Syncing || a.Next.Primary.Node != "d" || len(a.Next.Replicas) != 4 {
		t.Errorf("mended is %+v", a.Next)
	}
	known := overseeing(volume(), func(f *ControllerFacts) { f.Witnesses = nil }, of("c", func(p *Peer) { p.Copy.Promise = later(e2, "c", at(e1, 3)) }))
	if e, _ := OverseeRules.Decide(known).Next.Replica("c"); e.State != Ready {
		t.Errorf("the entry of an owner that is known becomes %v", e.State)
	}
}
