package ownership_test

import (
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

// of adds a peer's answer.
func of(node string, edit func(*Peer)) func(*ControllerFacts) {
	return func(f *ControllerFacts) {
		p := Peer{Node: node, Copy: replica(), Confirmed: true}
		edit(&p)
		f.Peers = append(slices.DeleteFunc(f.Peers, func(p Peer) bool { return p.Node == node }), p)
	}
}

func reaches(e lineage.Epoch, seq uint64) func(*Peer) {
	return func(p *Peer) { p.Copy.Points = append(p.Copy.Points, at(e, seq)) }
}

// A writer that was not stopped goes on beside the next one, if one of these counts as a proof.
func TestAProofIsOnlyAboutTheOwnerOfTheEpoch(t *testing.T) {
	tests := map[string]struct {
		facts *ControllerFacts
		want  verdict
	}{
		"another node has unstaged the epoch":         {overseeing(volume(owned(Active), entry("b", func(r *Replica) { r.Unstaged = e2 }))), verdict{Wait, NoProof}},
		"the owner has unstaged an earlier epoch":     {overseeing(volume(owned(Active), entry("a", func(r *Replica) { r.Unstaged = e1 }))), verdict{Wait, NoProof}},
		"another node has unstaged an earlier epoch":  {overseeing(volume(owned(Active), entry("b", func(r *Replica) { r.Unstaged = e1 }))), verdict{Wait, NoProof}},
		"a standby shut out an earlier epoch":         {overseeing(volume(owned(Active), shared, entry("b", func(r *Replica) { r.Fenced = e1 }))), verdict{Record, FenceRequested}},
		"no standby has shut any epoch out":           {overseeing(volume(owned(Active), shared)), verdict{Record, FenceRequested}},
		"a reservation was found of an earlier epoch": {overseeing(volume(owned(Active), shared), func(f *ControllerFacts) { f.Proofs = []Proof{{Kind: Reservation, Node: "a", Epoch: e1}} }), verdict{Record, FenceRequested}},
		"a node says that an earlier epoch stopped":   {overseeing(volume(owned(Active)), func(f *ControllerFacts) { f.Proofs = []Proof{{Kind: Stopped, Node: "a", Epoch: e1}} }), verdict{Wait, NoProof}},
		"the target may forget who has the disk": {overseeing(volume(owned(Active), shared, func(v *Volume) { v.Sharing.Persistent = false }, entry("b", func(r *Replica) { r.Fenced = e2 }))),
			verdict{Wait, NoProof}},
		"a volume of copies has no disk to be shut out of": {overseeing(volume(owned(Active), func(v *Volume) { v.Sharing.Persistent = true })), verdict{Wait, NoProof}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, OverseeRules.Decide(tt.facts), tt.want) })
	}
}

// A statement about one node needs no more than itself, whatever else is known and however many nodes are lost.
func TestAWordAboutOneNodeIsBelievedBesideAProofThatTheBrakeHolds(t *testing.T) {
	expect(t, OverseeRules.Decide(overseeing(volume(owned(Active)), proof(PowerOff), proof(OutOfService), lost("a", "b"))), verdict{Record, WriterFenced})
}

func TestTheFenceOfASharedDiskEndsItsEpoch(t *testing.T) {
	v := volume(owned(Active), shared, func(v *Volume) { v.Clean, v.FenceRequest = true, FenceRequest{"b", e2} }, entry("b", func(r *Replica) { r.Fenced = e2 }))
	a := OverseeRules.Decide(overseeing(v))
	expect(t, a, verdict{Record, WriterFenced})
	if n := a.Next; n == nil || n.Primary.Phase != Fenced || n.Clean || n.FenceRequest != (FenceRequest{}) || n.Epoch != e2 || n.ExpireAt != now.Add(ClaimWithin+ExpireAfter) {
		t.Errorf("recorded is %+v", n)
	}
	expect(t, OverseeRules.Decide(overseeing(a.Next)), verdict{Nothing, Settled})
}

func TestAStandbyIsAskedThatCanAct(t *testing.T) {
	request := func(node string, e lineage.Epoch) func(*Volume) {
		return func(v *Volume) { v.FenceRequest = FenceRequest{node, e} }
	}
	tests := map[string]struct {
		facts *ControllerFacts
		asked string // empty: nobody is asked anew
	}{
		"the first":                             {overseeing(volume(owned(Active), shared)), "b"},
		"not one that is lost":                  {overseeing(volume(owned(Active), shared), lost("b")), "c"},
		"not one whose attachment is not ready": {overseeing(volume(owned(Active), shared, state("b", Reserved))), "c"},
		"anew in each epoch":                    {overseeing(volume(owned(Active), shared, request("c", e1))), "b"},
		"another, once the asked one is lost":   {overseeing(volume(owned(Active), shared, request("b", e2)), lost("b")), "c"},
		"nobody while the asked one can act":    {overseeing(volume(owned(Active), shared, request("c", e2))), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := OverseeRules.Decide(tt.facts)
			if tt.asked == "" {
				expect(t, a, verdict{Wait, FenceRequested})
				return
			}
			expect(t, a, verdict{Record, FenceRequested})
			if a.Next != nil && a.Next.FenceRequest != (FenceRequest{tt.asked, e2}) {
				t.Errorf("the request is %v", a.Next.FenceRequest)
			}
		})
	}
}

// The point from which the next owner goes on. Too early a point loses writes, and a point that no copy of the
// volume has loses all.
func TestAFenceGoesOnFromTheNewestPointThatCounts(t *testing.T) {
	primary := entry("a", func(r *Replica) { r.Point = at(e2, 6) })
	stopped := entry("a", func(r *Replica) { r.Point, r.Unstaged = at(e2, 6), e2 })
	tests := map[string]struct {
		facts *ControllerFacts
		want  lineage.Point
		known lineage.Point
	}{
		"what all have": {overseeing(volume(owned(Active)), proof(PowerOff)), at(e1, 3), at(e1, 3)},
		"what one has":  {overseeing(volume(owned(Active)), proof(PowerOff), of("c", reaches(e2, 4))), at(e2, 4), at(e1, 3)},
		"not what a node has that has no replica":    {overseeing(volume(owned(Active)), proof(PowerOff), of("d", reaches(e2, 5))), at(e1, 3), at(e1, 3)},
		"not what is condemned":                      {overseeing(volume(owned(Active)), proof(PowerOff), of("c", func(p *Peer) { reaches(e2, 5)(p); p.Copy.Condemned = true })), at(e1, 3), at(e1, 3)},
		"not what the owner has, which may go on":    {overseeing(volume(owned(Active), primary), proof(PowerOff), of("a", reaches(e2, 6))), at(e1, 3), at(e2, 6)},
		"also what the owner has, once it stopped":   {overseeing(volume(owned(Active), stopped), of("a", reaches(e2, 6))), at(e2, 6), at(e2, 6)},
		"what the record tells of is no copy":        {overseeing(volume(owned(Active), entry("c", func(r *Replica) { r.Point = at(e2, 5) })), proof(PowerOff)), at(e1, 3), at(e2, 5)},
		"a point of another history is not the loss": {overseeing(volume(owned(Active), entry("c", func(r *Replica) { r.Point = at(e3, 9) })), proof(PowerOff)), at(e1, 3), at(e1, 3)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := OverseeRules.Decide(tt.facts)
			expect(t, a, verdict{Record, WriterFenced})
			if a.Next == nil {
				return
			}
			if a.Next.RecoveryPoint != tt.want {
				t.Errorf("it goes on from %v, want %v", a.Next.RecoveryPoint, tt.want)
			}
			if n := len(a.Next.Losses); n == 0 || a.Next.Losses[n-1] != (Loss{Epoch: e2, Kept: tt.want, Known: tt.known}) {
				t.Errorf("the losses are %v", a.Next.Losses)
			}
		})
	}
}

func TestAFailoverWaitsOnlyForACopyThatMayBeBetter(t *testing.T) {
	since := func(d time.Duration) func(*ControllerFacts) {
		return func(f *ControllerFacts) { f.SuspectFor = d }
	}
	just := since(Settle - 1)
	ahead := entry("c", func(r *Replica) { r.Point = at(e2, 5) })
	tests := map[string]struct {
		facts *ControllerFacts
		want  verdict
	}{
		"a better copy has not answered":                   {overseeing(volume(owned(Active), ahead), proof(PowerOff), silent("c"), just), verdict{Wait, Settling}},
		"it has answered, and lost its point":              {overseeing(volume(owned(Active), ahead), proof(PowerOff), just), verdict{Record, WriterFenced}},
		"the silent copy is no better":                     {overseeing(volume(owned(Active), entry("b", func(r *Replica) { r.Point = at(e2, 5) })), proof(PowerOff), silent("c"), just), verdict{Record, WriterFenced}},
		"only the owner's copy is better":                  {overseeing(volume(owned(Active), entry("a", func(r *Replica) { r.Point = at(e2, 5) })), proof(PowerOff), just), verdict{Record, WriterFenced}},
		"no copy is better":                                {overseeing(volume(owned(Active)), proof(PowerOff), silent("c"), just), verdict{Record, WriterFenced}},
		"the silent copy's point is no part of the volume": {overseeing(volume(owned(Active), entry("c", func(r *Replica) { r.Point = at(e3, 9) })), proof(PowerOff), silent("c"), just), verdict{Record, WriterFenced}},
		"its node is there, and its agent is not":          {overseeing(volume(owned(Active), ahead), proof(PowerOff), silent("c"), since(Silence-1)), verdict{Wait, Settling}},
		"its agent is away for too long":                   {overseeing(volume(owned(Active), ahead), proof(PowerOff), silent("c"), since(Silence)), verdict{Record, WriterFenced}},
		"its node is lost, too":                            {overseeing(volume(owned(Active), ahead), proof(PowerOff), silent("c"), lost("c"), since(Settle)), verdict{Record, WriterFenced}},
		"its node was lost a moment ago":                   {overseeing(volume(owned(Active), ahead), proof(PowerOff), silent("c"), lost("c"), just), verdict{Wait, Settling}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, OverseeRules.Decide(tt.facts), tt.want) })
	}
}

func TestTheRecoveryPointStaysWhereItIsHeldOrMayBe(t *testing.T) {
	behind := []func(*ControllerFacts){of("b", func(p *Peer) { p.Copy.Points = points(e1, 1, 2) }), of("c", func(p *Peer) { p.Copy.Points = points(e1, 1) })}
	manual := func(v *Volume) { v.Failover.Automatic = false }
	b, c := entry("b", older), entry("c", older)
	briefly := func(f *ControllerFacts) { lost("a")(f); f.Nodes[0].LostFor = Settle - 1 }
	settled := func(f *ControllerFacts) { lost("a")(f); f.Nodes[0].LostFor = Settle }
	facts := func(v *Volume, edits ...func(*ControllerFacts)) *ControllerFacts {
		return overseeing(v, append(slices.Clone(behind), edits...)...)
	}
	tests := map[string]struct {
		facts *ControllerFacts
		want  verdict
	}{
		"its only holder is lost":                                              {facts(volume(b, c), settled), verdict{Record, RecoveryPointLost}},
		"its only holder was just lost":                                        {facts(volume(b, c), briefly), verdict{Nothing, Settled}},
		"its only holder is there and has not answered":                        {facts(volume(b, c)), verdict{Nothing, Settled}},
		"its only holder has answered without it":                              {facts(volume(b, c), of("a", func(p *Peer) { p.Copy.Points = points(e1, 1) })), verdict{Record, RecoveryPointLost}},
		"a lost node's replica was behind":                                     {facts(volume(b, c), settled, func(f *ControllerFacts) { f.Peers = f.Peers[:1] }), verdict{Record, RecoveryPointLost}},
		"a node has it of which the record thinks less":                        {facts(volume(b, c), settled, of("c", func(*Peer) {})), verdict{Nothing, Settled}},
		"a node that answers has it while the brake holds":                     {facts(volume(b, c), lost("a", "b"), of("c", func(*Peer) {}), func(f *ControllerFacts) { f.Nodes[0].LostFor, f.Nodes[1].LostFor = Settle, Settle }), verdict{Nothing, Settled}},
		"a copy that lacks it has a later point, of a writer that was cut off": {facts(volume(owned(Fenced), b, c), settled, of("c", func(p *Peer) { p.Copy.Points = append(points(e1, 1), at(e2, 4)) })), verdict{Record, RecoveryPointLost}},
		"the volume does not fail over by itself":                              {facts(volume(b, c, manual), settled), verdict{Wait, PromotionBlocked}},
		"a person has named the point to go on from":                           {facts(volume(b, c, manual, func(v *Volume) { v.Failover.Approved = at(e1, 2) }), settled), verdict{Record, RecoveryPointLost}},
		"a person has named another point":                                     {facts(volume(b, c, manual, func(v *Volume) { v.Failover.Approved = at(e1, 1) }), settled), verdict{Wait, PromotionBlocked}},
		"the volume is being deleted":                                          {facts(volume(b, c, func(v *Volume) { v.Deleting = true }, state("a", Removing), state("b", Removing), state("c", Removing)), settled), verdict{Nothing, Settled}},
		"the volume has an owner, who goes on":                                 {facts(volume(owned(Active), b, c), settled, func(f *ControllerFacts) { f.Witnesses = nil }), verdict{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := OverseeRules.Decide(tt.facts)
			if tt.want != (verdict{}) {
				expect(t, a, tt.want)
			} else if a.Next != nil && a.Next.RecoveryPoint != tt.facts.Record.RecoveryPoint {
				t.Errorf("the point is moved to %v", a.Next.RecoveryPoint)
			}
			if a.Reason != RecoveryPointLost {
				return
			}
			if n := len(a.Next.Losses); n == 0 || a.Next.RecoveryPoint == at(e1, 3) || a.Next.Losses[n-1] != (Loss{Epoch: tt.facts.Record.Epoch, Kept: a.Next.RecoveryPoint, Known: at(e1, 3)}) || a.Next.Clean {
				t.Errorf("it goes on from %v, clean %v, with the losses %v", a.Next.RecoveryPoint, a.Next.Clean, a.Next.Losses)
			}
		})
	}
}

// The message names how many nodes are without the API: the least that a set of nodes has.
func TestHowManyNodesAreWithoutTheAPI(t *testing.T) {
	three, five := []string{"a", "b", "c"}, []string{"a", "b", "c", "d", "e"}
	peers := []PeerContact{{"b", AwayAfter}, {"c", AwayAfter}, {"d", AwayAfter}}
	for name, tt := range map[string]struct {
		sets  [][]string
		alike int
		away  bool
	}{
		"no set":                      {nil, 0, false},
		"one set":                     {[][]string{three}, 3, true},
		"a larger set first":          {[][]string{five, three}, 3, true},
		"a larger set last":           {[][]string{three, five}, 3, true},
		"the same nodes twice":        {[][]string{five, five}, 4, true},
		"a set of which most are not": {[][]string{three, {"a", "x", "y"}}, 1, false},
	} {
		if alike, away := APIIsAway(&Contact{SinceRenewal: time.Minute, Sets: tt.sets, Peers: peers}); alike != tt.alike || away != tt.away {
			t.Errorf("%s: %d, %t", name, alike, away)
		}
	}
}
