package ownership_test

import (
	"slices"
	"testing"
	"time"

	. "berth.dev/berth/internal/ownership"
)

// overseeing are the controller's facts about a volume whose primary a is silent.
func overseeing(v *Volume, edits ...func(*ControllerFacts)) *ControllerFacts {
	f := &ControllerFacts{Now: now, Record: v, SuspectFor: time.Minute, Watching: time.Minute}
	for _, n := range []string{"b", "c"} {
		f.Peers = append(f.Peers, Peer{Node: n, Copy: replica(), Confirmed: true})
	}
	for _, n := range []string{"a", "b", "c"} {
		f.Nodes = append(f.Nodes, Machine{Name: n, Fits: true, Slots: 1})
	}
	for _, w := range []string{"b", "c", "lease"} {
		f.Witnesses = append(f.Witnesses, Witness{Name: w})
	}
	for _, edit := range edits {
		edit(f)
	}
	return f
}

// mute lets nodes answer no question.
func mute(nodes ...string) func(*ControllerFacts) {
	return func(f *ControllerFacts) {
		f.Peers = slices.DeleteFunc(f.Peers, func(p Peer) bool { return slices.Contains(nodes, p.Node) })
	}
}

func proof(kind ProofKind) func(*ControllerFacts) {
	return func(f *ControllerFacts) {
		f.Proofs = append(f.Proofs, Proof{Kind: kind, Node: "a", Boot: "boot1", Epoch: e2})
	}
}

func lost(names ...string) func(*ControllerFacts) {
	return func(f *ControllerFacts) {
		for i := range f.Nodes {
			for _, n := range names {
				if f.Nodes[i].Name == n {
					f.Nodes[i].Lost, f.Nodes[i].LostFor = true, time.Hour
				}
			}
		}
	}
}

func silent(node string) func(*ControllerFacts) {
	return func(f *ControllerFacts) {
		for i := range f.Peers {
			if f.Peers[i].Node == node {
				f.Peers = append(f.Peers[:i:i], f.Peers[i+1:]...)
				return
			}
		}
	}
}

func TestTheControllerDecidesAboutASilentPrimary(t *testing.T) {
	active, disk := volume(owned(Active)), volume(owned(Active), shared)
	manual := volume(owned(Active), func(v *Volume) { v.Failover.Automatic = false })
	ahead := volume(owned(Active), entry("c", func(r *Replica) { r.Point = at(e2, 5) }))
	aged := func(f *ControllerFacts) { f.Peers[0].Age, f.Peers[1].Age = time.Hour, time.Hour }
	tests := map[string]struct {
		facts *ControllerFacts
		want  verdict
	}{
		"to do nothing while the peers do not suspect the primary": {overseeing(active, func(f *ControllerFacts) { f.Witnesses = []Witness{{"b", true}, {"c", false}} }), verdict{Nothing, Settled}},
		"to wait without proof":                                             {overseeing(active), verdict{Wait, NoProof}},
		"to wait after an expired lease":                                    {overseeing(active, proof(LeaseExpired)), verdict{Wait, NoProof}},
		"to wait after the deletion of the Node":                            {overseeing(active, proof(NodeDeleted)), verdict{Wait, NoProof}},
		"to wait after silence":                                             {overseeing(active, proof(Unreachable)), verdict{Wait, NoProof}},
		"to fence with a power record":                                      {overseeing(active, proof(PowerOff)), verdict{Record, WriterFenced}},
		"to fence with an out-of-service taint":                             {overseeing(active, proof(OutOfService)), verdict{Record, WriterFenced}},
		"to fence when the self-fence contract has run out":                 {overseeing(active, proof(SelfFenced)), verdict{Record, WriterFenced}},
		"to fence when the node recorded the end of the epoch":              {overseeing(volume(owned(Active), entry("a", func(r *Replica) { r.Unstaged = e2 }))), verdict{Record, WriterFenced}},
		"to fence a node that died while preparing":                         {overseeing(volume(owned(Preparing)), proof(PowerOff)), verdict{Record, WriterFenced}},
		"to wait after a power record of an earlier boot":                   {overseeing(active, func(f *ControllerFacts) { f.Proofs = []Proof{{Kind: PowerOff, Node: "a", Boot: "boot0"}} }), verdict{Wait, NoProof}},
		"to wait after a proof about another node":                          {overseeing(active, func(f *ControllerFacts) { f.Proofs = []Proof{{Kind: OutOfService, Node: "b"}} }), verdict{Wait, NoProof}},
		"to wait after the end of an older epoch":                           {overseeing(volume(owned(Active), entry("a", func(r *Replica) { r.Unstaged = e1 }))), verdict{Wait, NoProof}},
		"to wait while the brake holds":                                     {overseeing(active, proof(PowerOff), lost("a", "b")), verdict{Wait, BrakeHeld}},
		"to fence by a person's word though the brake holds":                {overseeing(active, proof(OutOfService), lost("a", "b")), verdict{Record, WriterFenced}},
		"to wait while no replica has a copy to promote":                    {overseeing(active, proof(PowerOff), silent("b"), silent("c")), verdict{Wait, NoCandidate}},
		"to wait a moment for a better copy":                                {overseeing(ahead, proof(PowerOff), silent("c"), func(f *ControllerFacts) { f.SuspectFor = 0 }), verdict{Wait, Settling}},
		"to fence after that moment without the better copy":                {overseeing(ahead, proof(PowerOff), silent("c"), lost("c")), verdict{Record, WriterFenced}},
		"to wait when the loss exceeds the policy":                          {overseeing(active, proof(PowerOff), aged), verdict{Wait, PromotionBlocked}},
		"to wait with a manual volume":                                      {overseeing(manual, proof(PowerOff)), verdict{Wait, PromotionBlocked}},
		"to fence a manual volume when a person names the snapshot":         {overseeing(volume(owned(Active), func(v *Volume) { v.Failover = Failover{Approved: at(e1, 3)} }), proof(PowerOff), aged), verdict{Record, WriterFenced}},
		"to ask a standby to shut out the writer of a shared disk":          {overseeing(disk), verdict{Record, FenceRequested}},
		"to wait for the standby":                                           {overseeing(volume(owned(Active), shared, func(v *Volume) { v.FenceRequest = FenceRequest{"b", e2} })), verdict{Wait, FenceRequested}},
		"to ask another standby when the asked standby is lost":             {overseeing(volume(owned(Active), shared, func(v *Volume) { v.FenceRequest = FenceRequest{"b", e2} }), func(f *ControllerFacts) { f.Nodes[1].Lost = true }), verdict{Record, FenceRequested}},
		"to wait for the standby when no agent answers":                     {overseeing(volume(owned(Active), shared, func(v *Volume) { v.FenceRequest = FenceRequest{"b", e2} }), mute("b", "c")), verdict{Wait, FenceRequested}},
		"to fence once the device refuses the writer":                       {overseeing(volume(owned(Active), shared, entry("b", func(r *Replica) { r.Fenced = e2 }))), verdict{Record, WriterFenced}},
		"to ask a standby though the writer of a shared disk fenced itself": {overseeing(disk, proof(SelfFenced)), verdict{Record, FenceRequested}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, OverseeRules.Decide(tt.facts), tt.want) })
	}
}

// A controller asked node b to shut node a out, and b has lost its path to the disk. Controllers ask node c only once b's
// entry is not Ready any more.
func TestAStandbyThatIsAskedAndHasNoPathSaysSoAndAnotherIsAsked(t *testing.T) {
	v := volume(owned(Active), shared, asked("b", "a"))
	_, says := NodeRules().Next(on("b", v, with(promised(v), has()), link(Attaching)))
	expect(t, says, verdict{Record, BeingAttached})
	asks := OverseeRules.Decide(overseeing(says.Next))
	expect(t, asks, verdict{Record, FenceRequested})
	if r := asks.Next.FenceRequest; r.Executor != "c" {
		t.Errorf("%s is asked", r.Executor)
	}
}

// Most paths are back within seconds, and a target has many disks.
func TestAStandbyThatNobodyAsksWritesNothingWhileItsPathIsAway(t *testing.T) {
	for name, v := range map[string]*Volume{
		"no node is asked":        volume(owned(Active), shared),
		"another node is asked":   volume(owned(Active), shared, asked("c", "a")),
		"it said so before":       volume(owned(Active), shared, asked("b", "a"), state("b", Syncing)),
		"it has yet to attach it": volume(owned(Active), shared, asked("b", "a"), state("b", Reserved)),
	} {
		t.Run(name, func(t *testing.T) {
			_, a := NodeRules().Next(on("b", v, with(promised(v), has()), link(Attaching)))
			expect(t, a, verdict{Wait, BeingAttached})
		})
	}
}

func TestAControllerAsksAStandbyWhoseAgentAnswers(t *testing.T) {
	for _, c := range []struct {
		mute      []string
		was, asks string
	}{
		{nil, "", "b"}, {[]string{"b"}, "", "c"}, {[]string{"b"}, "b", "c"}, {[]string{"b", "c"}, "", "b"},
	} {
		v := volume(owned(Active), shared)
		if c.was != "" {
			v = volume(owned(Active), shared, asked(c.was, "a"))
		}
		a := OverseeRules.Decide(overseeing(v, mute(c.mute...)))
		expect(t, a, verdict{Record, FenceRequested})
		if got := a.Next.FenceRequest.Executor; got != c.asks {
			t.Errorf("while %v are mute and %q was asked, %s is asked", c.mute, c.was, got)
		}
	}
}

func TestADiskThatDoesNotFailOverByItselfWaitsForAnAdministrator(t *testing.T) {
	manual := func(v *Volume) { v.Failover.Automatic = false }
	asked := func(v *Volume) { v.FenceRequest = FenceRequest{"b", e2} }
	stopped := entry("a", func(r *Replica) { r.Unstaged = e2 })
	shutOut := entry("b", func(r *Replica) { r.Fenced = e2 })
	tests := map[string]struct {
		record *Volume
		edits  []func(*ControllerFacts)
		want   verdict
	}{
		"when its writer is silent":                    {volume(owned(Active), shared, manual), nil, verdict{Wait, WordNeeded}},
		"when its machine is off":                      {volume(owned(Active), shared, manual), []func(*ControllerFacts){proof(PowerOff)}, verdict{Wait, WordNeeded}},
		"where the target forgets reservations":        {volume(owned(Active), shared, func(v *Volume) { v.Sharing.Persistent = false }, manual), nil, verdict{Wait, WordNeeded}},
		"when the request is about an older epoch":     {volume(owned(Active), shared, manual, func(v *Volume) { v.FenceRequest = FenceRequest{"b", e1} }), nil, verdict{Wait, WordNeeded}},
		"and asks the standby that he names":           {volume(owned(Active), shared, manual, asked), nil, verdict{Wait, FenceRequested}},
		"and asks another when that one is lost":       {volume(owned(Active), shared, manual, asked), []func(*ControllerFacts){lost("b")}, verdict{Record, FenceRequested}},
		"and goes on once the disk refuses the writer": {volume(owned(Active), shared, manual, asked, shutOut), nil, verdict{Record, WriterFenced}},
		"and takes a power record then":                {volume(owned(Active), shared, manual, asked), []func(*ControllerFacts){proof(PowerOff)}, verdict{Record, WriterFenced}},
		"and takes the taint for his word":             {volume(owned(Active), shared, manual), []func(*ControllerFacts){proof(OutOfService)}, verdict{Record, WriterFenced}},
		"unless the node itself has stopped":           {volume(owned(Active), shared, manual, stopped), nil, verdict{Record, WriterFenced}},
		"unless it has stopped, and is off":            {volume(owned(Active), shared, manual, stopped), []func(*ControllerFacts){proof(PowerOff)}, verdict{Record, WriterFenced}},
		"and is braked like others":                    {volume(owned(Active), shared, manual, asked, shutOut), []func(*ControllerFacts){lost("a", "c")}, verdict{Wait, BrakeHeld}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, OverseeRules.Decide(overseeing(tt.record, tt.edits...)), tt.want) })
	}
}

func TestAFenceGoesOnFromTheNewestValidCopyAndRecordsTheLoss(t *testing.T) {
	v := volume(owned(Active), entry("a", func(r *Replica) { r.Point = at(e2, 6) }))
	f := overseeing(v, proof(PowerOff), func(f *ControllerFacts) {
		f.Peers[0].Copy.Points = append(f.Peers[0].Copy.Points, at(e2, 4))
		f.Peers[1].Copy.Points = append(f.Peers[1].Copy.Points, at(e1, 9)) // an old branch with a higher number
	})
	next := OverseeRules.Decide(f).Next
	if next == nil || next.RecoveryPoint != at(e2, 4) {
		t.Fatalf("record %+v", next)
	}
	if want := (Loss{Epoch: e2, Kept: at(e2, 4), Known: at(e2, 6)}); next.Losses[len(next.Losses)-1] != want {
		t.Errorf("loss %+v, want %+v", next.Losses, want)
	}
	if next.Clean {
		t.Error("the next mount would skip the consistency check")
	}
}

func TestTheRecoveryPointOfAnUnownedVolume(t *testing.T) {
	behind := func(f *ControllerFacts) {
		f.Peers[0].Copy.Points, f.Peers[1].Copy.Points = points(e1, 1, 2), points(e1, 1)
	}
	tests := map[string]struct {
		facts *ControllerFacts
		want  verdict
	}{
		"stays while a replica has the point":     {overseeing(volume()), verdict{Nothing, Settled}},
		"stays while the holder may come back":    {overseeing(volume(), behind), verdict{Nothing, Settled}},
		"is lowered when the holders are lost":    {overseeing(volume(entry("b", older), entry("c", older)), behind, lost("a")), verdict{Record, RecoveryPointLost}},
		"is not lowered while the brake holds":    {overseeing(volume(entry("b", older), entry("c", older)), behind, lost("a", "b")), verdict{Wait, BrakeHeld}},
		"is not lowered beyond the policy's loss": {overseeing(volume(entry("b", older), entry("c", older)), behind, lost("a"), func(f *ControllerFacts) { f.Peers[0].Age = time.Hour }), verdict{Wait, PromotionBlocked}},
		"is never raised by a copy that turns up": {overseeing(volume(owned(Fenced)), func(f *ControllerFacts) { f.Peers[0].Copy.Points = append(f.Peers[0].Copy.Points, at(e2, 4)) }), verdict{Nothing, Settled}},
		"cannot be lowered without a copy":        {overseeing(volume(), silent("b"), silent("c"), lost("a", "b", "c"), func(f *ControllerFacts) { f.Nodes = append(f.Nodes, make([]Machine, 9)...) }), verdict{Wait, NoCandidate}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, OverseeRules.Decide(tt.facts), tt.want) })
	}
}

func older(r *Replica) { r.Point = at(e1, 2) }

func TestTheSelfFenceContract(t *testing.T) {
	due := Leases{Suspect: "a", Boot: "boot1", Watchdog: true, Lapsed: SelfFenceAfter + SelfFenceMargin, Named: "abc", Counted: "abc", Nodes: 3, Steady: 2}
	tests := map[string]struct {
		edit func(*Leases)
		want bool
	}{
		"proves a stop after the full time":            {func(*Leases) {}, true},
		"proves no stop without a watchdog":            {func(l *Leases) { l.Watchdog = false }, false},
		"proves no stop while the kubelet lives":       {func(l *Leases) { l.KubeletAlive = true }, false},
		"proves no stop before the margin has passed":  {func(l *Leases) { l.Lapsed = SelfFenceAfter }, false},
		"proves no stop when most leases lapsed alike": {func(l *Leases) { l.Steady = 1 }, false},
		"proves no stop when a node left the cluster":  {func(l *Leases) { l.Counted, l.Nodes = "ac", 2 }, false},
		"proves no stop when the lease names no nodes": {func(l *Leases) { l.Named, l.Counted = "", "" }, false},
		"proves no stop in a cluster of two":           {func(l *Leases) { l.Named, l.Counted, l.Nodes, l.Steady = "ab", "ab", 2, 1 }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := due
			tt.edit(&l)
			if p, ok := ContractProves(&l); ok != tt.want || ok && p.Boot != "boot1" {
				t.Errorf("ContractProves() = %v, %t", p, ok)
			}
		})
	}
}

func TestASetOfNodesIsNamedAfterItsMembers(t *testing.T) {
	of := MembersOf("a", []string{"b", "a", "c"})
	for _, same := range []Members{MembersOf("a", []string{"a", "b", "c"}), MembersOf("a", []string{"c", "b"}), MembersOf("b", []string{"c", "a"})} {
		if same != of {
			t.Error("one set has two names")
		}
	}
	named := map[Members][]string{}
	for _, nodes := range [][]string{nil, {"b"}, {"b", "c"}, {"bc"}, {"b c"}, {"b\n1 c"}} {
		if other, is := named[MembersOf("a", nodes)]; is {
			t.Errorf("%q and %q have one name", nodes, other)
		}
		named[MembersOf("a", nodes)] = nodes
	}
}

func TestANodeStopsItsWriters(t *testing.T) {
	long, away, short := SelfFenceAfter, AwayAfter, AwayAfter-time.Second
	three, four, five := []string{"a", "b", "c"}, []string{"a", "b", "c", "d"}, []string{"a", "b", "c", "d", "e"}
	sets := func(sets ...[]string) [][]string { return sets }
	peers := func(b, c time.Duration) []PeerContact { return []PeerContact{{"b", b}, {"c", c}} }
	tests := map[string]struct {
		contact Contact
		want    bool
	}{
		"keeps the writers while the node renews the lease":         {Contact{SinceRenewal: long - 1, Sets: sets(three)}, false},
		"stops the writers when it knows no set of nodes":           {Contact{SinceRenewal: long}, true},
		"stops the writers when no peer answers":                    {Contact{SinceRenewal: long, Sets: sets(three)}, true},
		"keeps the writers in a cluster of one node":                {Contact{SinceRenewal: long, Sets: sets([]string{"a"})}, false},
		"stops the writers when the peers still reach the API":      {Contact{SinceRenewal: long, Sets: sets(three), Peers: peers(short, short)}, true},
		"keeps the writers when a majority lost the API alike":      {Contact{SinceRenewal: long, Sets: sets(three), Peers: peers(short, away)}, false},
		"stops the writers when only a minority lost the API alike": {Contact{SinceRenewal: long, Sets: sets(five), Peers: peers(away, short)}, true},
		"takes a half for no majority":                              {Contact{SinceRenewal: long, Sets: sets(four), Peers: peers(away, short)}, true},
		"counts only the peers in the set":                          {Contact{SinceRenewal: long, Sets: sets([]string{"a", "d", "e"}), Peers: peers(away, away)}, true},
		"counts a peer once": {Contact{SinceRenewal: long, Sets: sets(four),
			Peers: []PeerContact{{"b", away}, {"b", away}}}, true},
		"stops the writers when a set that was sent since has no such majority":   {Contact{SinceRenewal: long, Sets: sets(three, five), Peers: peers(away, short)}, true},
		"keeps the writers when each set that was sent since has such a majority": {Contact{SinceRenewal: long, Sets: sets(three, five), Peers: peers(away, away)}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, why := MustStop(&tt.contact); got != tt.want {
				t.Errorf("MustStop() = %t: %s", got, why.Message())
			}
		})
	}
}
