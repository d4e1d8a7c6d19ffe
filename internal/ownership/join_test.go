package ownership_test

import (
	"slices"
	"testing"

	. "berth.dev/berth/internal/ownership"
)

var (
	ofA = Key{Node: "a", Epoch: e2}
	ofB = Key{Node: "b", Epoch: e3}
	old = Key{Node: "c", Epoch: e1}
)

// pair is a disk that a writes in epoch 2, and for which b has opened epoch 3.
func pair(phase Phase, edits ...func(*Volume)) *Volume {
	return volume(append([]func(*Volume){many, writing("a", e2, Active), writing("b", e3, phase)}, edits...)...)
}

// as are the facts of a node as its rules see them: its own writer is the primary.
func as(node string, v *Volume, edits ...func(*NodeFacts)) *NodeFacts {
	return on(node, v.On(node), append([]func(*NodeFacts){with(promised(v.On(node)), has())}, edits...)...)
}

// knowing changes what the node's own copy keeps.
func knowing(edits ...func(*Copy)) func(*NodeFacts) {
	return func(f *NodeFacts) {
		for _, edit := range edits {
			edit(&f.Copy)
		}
	}
}

func raw(keys ...RawKey) func(*NodeFacts) {
	return func(f *NodeFacts) { f.Disk.Keys = append(f.Disk.Keys, keys...) }
}

func heldBy(k RawKey, registrants bool) func(*NodeFacts) {
	return func(f *NodeFacts) { f.Disk.Holder, f.Disk.Registrants = k, registrants }
}

func TestANodeJoinsTheWritersOfADisk(t *testing.T) {
	prep := pair(Preparing)
	opens := knowing(opened(e3))
	unknown := func(number uint64) RawKey { return Key{Node: "x", Epoch: epoch(number)}.Raw() }
	fences := Key{Node: "c", Epoch: e2, Fence: true}
	stopped := volume(many, writing("c", e1, Released), writing("a", e2, Active), writing("b", e3, Preparing))
	earlier := pair(Preparing, func(v *Volume) { v.Writers[0].FenceRequest = FenceRequest{Executor: "c", Epoch: e1} })
	pastFence := Key{Node: "c", Epoch: e1, Fence: true}
	// b is older than a here.
	early := volume(many, writing("b", e2, Preparing), writing("a", e3, Active))
	tests := map[string]struct {
		facts  *NodeFacts
		want   verdict
		key    Key
		expect RawKey
	}{
		"to open its epoch and register in one step":      {as("b", prep, reserved(Key{}, ofA)), verdict{Open, TakingReservation}, ofB, 0},
		"to register beside nobody":                       {as("b", prep, reserved(Key{})), verdict{Open, TakingReservation}, ofB, 0},
		"to register in place of an older key of its own": {as("b", prep, reserved(Key{Node: "b", Epoch: e1}, ofA), knowing(opened(e1))), verdict{Open, TakingReservation}, ofB, 0},
		"to register only once":                           {as("b", prep, reserved(Key{}, ofA), opens), verdict{GiveUp, RegistrationGone}, Key{}, 0},
		"not to count on a key of its last session":       {as("b", prep, reserved(Key{}, ofB, ofA), opens), verdict{GiveUp, RegistrationGone}, Key{}, 0},
		"to reserve a free disk":                          {as("b", prep, reserved(ofB), opens, heldBy(0, false)), verdict{Reserve, TakingReservation}, ofB, 0},
		"to reserve a disk that nobody holds":             {as("b", prep, reserved(ofB, ofA), opens, heldBy(0, true)), verdict{Reserve, TakingReservation}, ofB, 0},
		"to reserve it for all, whoever held it alone":    {as("b", prep, reserved(ofB, ofA), opens, heldBy(ofA.Raw(), false)), verdict{Reserve, TakingReservation}, ofB, ofA.Raw()},
		"to let what held the disk alone go last": {as("b", prep, reserved(ofB, ofA), opens, raw(old.Raw(), LeftByWipe(wiping)), heldBy(old.Raw(), false)),
			verdict{Reserve, TakingReservation}, ofB, LeftByWipe(wiping)},
		"to remove the key of a writer that has stopped":    {as("b", stopped, reserved(ofB, old, ofA), opens), verdict{Reserve, TakingReservation}, ofB, old.Raw()},
		"to remove a key of a request that is over":         {as("b", earlier, reserved(ofB, pastFence, ofA), opens), verdict{Reserve, TakingReservation}, ofB, pastFence.Raw()},
		"to reserve it for all in place of a single writer": {as("b", prep, reserved(ofB, old), opens, heldBy(old.Raw(), false)), verdict{Reserve, TakingReservation}, ofB, old.Raw()},
		"to remove what belongs to no open epoch":           {as("b", prep, reserved(ofB, old, ofA), opens), verdict{Reserve, TakingReservation}, ofB, old.Raw()},
		"to remove what an earlier volume left":             {as("b", prep, reserved(ofB, ofA), opens, raw(LeftByWipe(wiping))), verdict{Reserve, TakingReservation}, ofB, LeftByWipe(wiping)},
		"to remove what it does not know and is older":      {as("b", prep, reserved(ofB, ofA), opens, raw(unknown(2))), verdict{Reserve, TakingReservation}, ofB, unknown(2)},
		"to remove its own key of an epoch that is over":    {as("b", prep, reserved(ofB, Key{Node: "b", Epoch: e1}, ofA), opens), verdict{Reserve, TakingReservation}, ofB, Key{Node: "b", Epoch: e1}.Raw()},
		"to go on with the others registered":               {as("b", prep, reserved(ofB, ofA), opens), verdict{Record, Activating}, Key{}, 0},
		"to go on beside a newer writer":                    {as("b", early, reserved(Key{Node: "b", Epoch: e2}, Key{Node: "a", Epoch: e3}), knowing(opened(e2))), verdict{Record, Activating}, Key{}, 0},
		"to go on with the key of a standby at work":        {as("b", pair(Preparing, asked("c", "a")), reserved(ofB, fences, ofA), opens), verdict{Record, Activating}, Key{}, 0},
		"to remove the key of a standby whose work is over": {as("b", prep, reserved(ofB, fences, ofA), opens), verdict{Reserve, TakingReservation}, ofB, fences.Raw()},
		"to give up when it is to be shut out":              {as("b", pair(Preparing, asked("a", "b")), reserved(ofB, ofA), opens), verdict{GiveUp, ShutOut}, Key{}, 0},
		"to give up before it registers, too":               {as("b", pair(Preparing, asked("a", "b")), reserved(Key{}, ofA)), verdict{GiveUp, ShutOut}, Key{}, 0},
		"to give up even when it has been active":           {as("b", pair(Active, asked("a", "b")), reserved(ofB, ofA), opens), verdict{GiveUp, ShutOut}, Key{}, 0},
		"to go on while another is to be shut out":          {as("b", pair(Preparing, asked("b", "a")), reserved(ofB, ofA), opens), verdict{Record, Activating}, Key{}, 0},
		"to give up before a key of the future":             {as("b", prep, reserved(ofB, ofA), opens, raw(unknown(4))), verdict{GiveUp, HolderUnknown}, Key{}, 0},
		"to give up before a rival of its own number":       {as("b", prep, reserved(ofB, ofA), opens, raw(unknown(3))), verdict{GiveUp, HolderUnknown}, Key{}, 0},
		"to give up before it joins such keys":              {as("b", prep, reserved(Key{}, ofA), raw(unknown(4))), verdict{GiveUp, HolderUnknown}, Key{}, 0},
		"to give up before a holder of the future":          {as("b", prep, reserved(ofB, ofA), opens, heldBy(unknown(4), true)), verdict{GiveUp, HolderUnknown}, Key{}, 0},
		"to wait for a writer that the record forgot": {as("b", prep, reserved(ofB, Key{Node: "c", Epoch: epoch(4)}, ofA), opens,
			answers("c", func(p *Peer) { p.Copy.Opened = epoch(4) })), verdict{Wait, RecordBehind}, Key{}, 0},
		"to mount in the end":       {as("b", pair(Active), reserved(ofB, ofA), opens), verdict{Mount, OwnsEpoch}, Key{}, 0},
		"to wait before a stranger": {as("b", prep, reserved(ofB, ofA), opens, raw(42)), verdict{Wait, HolderUnknown}, Key{}, 0}, // see repairWriter
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := StageRules.Decide(tt.facts)
			expect(t, a, tt.want)
			if a.Key != tt.key || a.Expect != tt.expect {
				t.Errorf("with the key %v and for %x", a.Key, a.Expect)
			}
			if a.Verb == Open && a.Promise.Epoch != tt.key.Epoch {
				t.Errorf("it opens %v", a.Promise.Epoch)
			}
		})
	}
}

func TestOnlyAWriterThatMayBeShutOutBeforeItIsWrittenDownIsWaitedFor(t *testing.T) {
	tests := map[string]struct {
		edit  func(*Peer)
		waits bool
	}{
		"it has opened an epoch that is newer than its own in the record": {func(p *Peer) { p.Copy.Opened = e3 }, true},
		"it has opened that of the record":                                {func(p *Peer) { p.Copy.Opened = e2 }, false},
		"it has given the newer one up":                                   {func(p *Peer) { p.Copy.Opened, p.Copy.Closed = e3, e3 }, false},
		"it has opened none":                                              {func(*Peer) {}, false},
	}
	for name, tt := range tests {
		f := as("b", volume(many, writing("a", e2, Active), writing("b", epoch(4), Preparing)), reserved(Key{}, ofA), answers("a", tt.edit))
		if a := StageRules.Decide(f); (a.Verb == Wait && a.Reason == RecordBehind) != tt.waits || tt.waits && (a.Node != "a" || a.Epoch != e3) {
			t.Errorf("%s: %v: %s", name, a.Verb, a.Message())
		}
	}
}

// A disk that nobody holds takes the writes of those that were shut out, too.
func TestAWriterReservesADiskThatIsFree(t *testing.T) {
	free := heldBy(0, false)
	gone := func(f *NodeFacts) { f.Record = nil }
	tests := map[string]struct {
		facts *NodeFacts
		acts  bool
	}{
		"it is registered and has the disk mounted": {as("b", pair(Active), knowing(opened(e3)), mounted, reserved(ofB), free), true},
		"somebody holds it":                         {as("b", pair(Active), knowing(opened(e3)), mounted, reserved(ofB, ofA)), false},
		"it has not mounted it":                     {as("b", pair(Active), knowing(opened(e3)), reserved(ofB), free), false},
		"it is not registered":                      {as("b", pair(Active), knowing(opened(e3)), mounted, reserved(Key{}), free), false},
		"it is registered for another epoch":        {as("b", pair(Active), knowing(opened(e3)), mounted, reserved(Key{Node: "b", Epoch: e1}), free), false},
		"the disk is away":                          {as("b", pair(Active), knowing(opened(e3)), mounted, reserved(ofB), free, link(Attaching)), false},
		"there is no record":                        {as("b", pair(Active), knowing(opened(e3)), mounted, reserved(ofB), free, gone), false},
		"one node writes": {as("b", pair(Active, func(v *Volume) { v.Sharing.ManyWriters, v.Sharing.Persistent = false, false }),
			knowing(opened(e3)), mounted, reserved(ofB), free), false},
	}
	for name, tt := range tests {
		a, _ := TendRules.Rule("protect")(tt.facts)
		if acts := a.Verb == Reserve && a.Reason == TakingReservation && a.Expect == 0 && a.Key == ofB; acts != tt.acts {
			t.Errorf("%s: %v: %s", name, a.Verb, a.Message())
		}
	}
}

// b is to shut a out, or c is, which writes nothing.
func TestAWriterOfSeveralIsShutOut(t *testing.T) {
	byB, byC := pair(Active, asked("b", "a")), pair(Active, asked("c", "a"))
	fence := Key{Node: "c", Epoch: e2, Fence: true}
	opens := knowing(opened(e3))
	said := entry("b", func(r *Replica) { r.Fenced = e2 })
	preparing := volume(many, writing("a", e2, Preparing), writing("b", e3, Active), asked("b", "a"))
	over := pair(Active, asked("b", "a"), func(v *Volume) { v.Writers[0].Primary.Phase = Released })
	other := pair(Active, asked("b", "a"), func(v *Volume) { v.Writers[0].FenceRequest.Epoch = e1 })
	tests := map[string]struct {
		facts  *NodeFacts
		want   verdict
		key    Key
		expect RawKey
	}{
		"under its own key":                             {as("b", byB, opens, mounted, reserved(ofB, ofA)), verdict{Reserve, ShuttingOut}, ofB, ofA.Raw()},
		"under its own key, and nothing is mounted":     {as("b", byB, opens, wanted, reserved(ofB, ofA)), verdict{Reserve, ShuttingOut}, ofB, ofA.Raw()},
		"by a standby that registers for this":          {as("c", byC, reserved(Key{}, ofA)), verdict{Register, ShuttingOut}, fence, 0},
		"by a standby that has registered":              {as("c", byC, reserved(fence, ofA)), verdict{Reserve, ShuttingOut}, fence, ofA.Raw()},
		"by one whose old key belongs to no open epoch": {as("c", byC, reserved(Key{Node: "c", Epoch: e1}, ofA)), verdict{Register, ShuttingOut}, fence, 0},
		"and then it is written down":                   {as("b", byB, opens, mounted, reserved(ofB)), verdict{Record, ShuttingOut}, Key{}, 0},
		"before it has registered, too":                 {as("b", preparing, opens, mounted, reserved(ofB)), verdict{Record, ShuttingOut}, Key{}, 0},
		"also where a disk was never reserved":          {as("b", preparing, opens, wanted, reserved(ofB), heldBy(0, false)), verdict{Record, ShuttingOut}, Key{}, 0},
		"unless the target forgot who wrote":            {as("b", byB, opens, wanted, reserved(ofB), heldBy(0, false)), verdict{Wait, ReservationForgotten}, Key{}, 0},
		"unless nobody holds the disk":                  {as("b", byB, opens, wanted, reserved(ofB), heldBy(0, true)), verdict{Wait, ReservationForgotten}, Key{}, 0},
		"unless one node alone may write":               {as("b", byB, opens, wanted, reserved(ofB), heldBy(ofB.Raw(), false)), verdict{Wait, ReservationForgotten}, Key{}, 0},
		"only once":                                     {as("b", pair(Active, asked("b", "a"), said), opens, mounted, reserved(ofB, ofA)), verdict{Nothing, Settled}, Key{}, 0},
		"not after its epoch":                           {as("b", over, opens, mounted, reserved(ofB, ofA)), verdict{Nothing, Settled}, Key{}, 0},
		"not for an earlier epoch":                      {as("b", other, opens, mounted, reserved(ofB, ofA)), verdict{Nothing, Settled}, Key{}, 0},
		"not by another than is asked":                  {as("b", byC, opens, mounted, reserved(ofB, ofA)), verdict{Nothing, Settled}, Key{}, 0},
		"not by itself":                                 {as("a", pair(Active, asked("a", "a")), knowing(opened(e2)), mounted, reserved(ofA, ofB)), verdict{Nothing, Settled}, Key{}, 0},
		"not while the disk is away, and says so":       {as("b", byB, opens, mounted, reserved(ofB), link(Attaching)), verdict{Record, Reporting}, Key{}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := TendRules.Decide(tt.facts)
			expect(t, a, tt.want)
			if a.Key != tt.key || a.Expect != tt.expect {
				t.Errorf("with the key %v and for %x", a.Key, a.Expect)
			}
		})
	}
}

// c writes, and has given up the epoch that its session is registered for.
func TestAWriterThatOpensAnotherEpochShutsOutUnderAKeyOfItsOwn(t *testing.T) {
	v := volume(many, writing("a", e2, Active), writing("c", e3, Preparing), asked("c", "a"))
	a := TendRules.Decide(as("c", v, wanted, reserved(Key{Node: "c", Epoch: e1}, ofA)))
	expect(t, a, verdict{Register, ShuttingOut})
	over := volume(many, writing("a", e2, Active), writing("c", e3, Fenced), asked("c", "a"))
	a = TendRules.Decide(as("c", over, reserved(Key{Node: "c", Epoch: e3}, ofA)))
	expect(t, a, verdict{Register, ShuttingOut})
	if a.Key != (Key{Node: "c", Epoch: e2, Fence: true}) {
		t.Errorf("under %v", a.Key)
	}
}

func TestEachOfSeveralWritersIsShutOutForItself(t *testing.T) {
	v := volume(many, writing("a", e1, Active), writing("b", e2, Active), writing("c", e3, Active), asked("c", "a"), asked("c", "b"))
	mine, first, second := Key{Node: "c", Epoch: e3}, Key{Node: "a", Epoch: e1}, Key{Node: "b", Epoch: e2}
	facts := func(v *Volume, keys ...Key) *NodeFacts {
		return as("c", v, knowing(opened(e3)), mounted, reserved(mine, keys...))
	}
	if a := TendRules.Decide(facts(v, first, second)); a.Expect != first.Raw() {
		t.Errorf("%v: %s", a.Verb, a.Message())
	}
	_, a := NodeRules().Next(facts(v, second))
	expect(t, a, verdict{Record, ShuttingOut})
	e, _ := a.Next.Replica("c")
	if e.Fenced != e1 || a.Next.Primary.Node != "c" || len(a.Next.Writers) != 2 || a.Next.On("a").FenceRequest.Executor != "c" {
		t.Errorf("the record is %+v", a.Next)
	}
	if a := TendRules.Decide(facts(a.Next, second)); a.Verb != Reserve || a.Expect != second.Raw() {
		t.Errorf("%v: %s", a.Verb, a.Message())
	}
	// The word about b would take the word about a back, which no controller has read.
	_, waits := NodeRules().Next(facts(a.Next))
	expect(t, waits, verdict{Nothing, Settled})
	read := *a.Next.On("a")
	read.Primary.Phase, read.FenceRequest = Fenced, FenceRequest{}
	_, says := NodeRules().Next(facts(read.Stored()))
	expect(t, says, verdict{Record, ShuttingOut})
}

// What a node says of its own writer, no other node says better. A controller hears it from the node.
func TestAForgottenEpochOfAWriterIsMended(t *testing.T) {
	forgot := volume(many, writing("b", e2, Active))
	mine := Promise{Epoch: e3, Primary: "a", Boot: "boot1"}
	knows := func(p Promise, edits ...func(*Copy)) func(*NodeFacts) {
		return knowing(append([]func(*Copy){func(c *Copy) { c.Promise, c.Opened = p, p.Epoch }}, edits...)...)
	}
	closed := func(c *Copy) { c.Closed = c.Opened }
	unopened := func(c *Copy) { c.Opened = e1 }
	stranger := func(f *NodeFacts) { f.Disk = Disk{Link: Attached, Holder: 42} }
	// The writer of epoch 3 was forgotten when its attachment went, and not by a backup.
	over := func(node string) *Volume {
		return volume(many, writing("b", e2, Active), func(v *Volume) { v.Keys = append(v.Keys, Key{Node: node, Epoch: e3}) })
	}
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"the node has opened a later one":              {as("a", forgot, knows(mine)), verdict{Record, RecordBehind}},
		"it has not opened it":                         {as("a", forgot, knows(mine, unopened), wanted), verdict{Record, TakingOver}},
		"it has given it up":                           {as("a", forgot, knows(mine, closed), wanted), verdict{Record, TakingOver}},
		"the record knows it":                          {as("a", pair(Active), knows(Promise{Epoch: e2, Primary: "a"}), reserved(ofA, ofB), mounted), verdict{Nothing, Settled}},
		"another node's is newer":                      {as("a", forgot, knows(Promise{Epoch: e3, Primary: "b"}), wanted), verdict{Record, TakingOver}},
		"the node has no entry":                        {as("d", forgot, knows(Promise{Epoch: e3, Primary: "d"})), verdict{Wait, RecordBehind}},
		"it was over":                                  {as("a", over("a"), knows(mine), wanted), verdict{Record, TakingOver}},
		"it was over, and the node has no entry":       {as("d", over("d"), knows(Promise{Epoch: e3, Primary: "d"})), verdict{Close, ClosingEpoch}},
		"it was over, and is given up":                 {as("d", over("d"), knows(Promise{Epoch: e3, Primary: "d"}, closed)), verdict{Detach, NoLongerAttached}},
		"the promise of it is kept":                    {as("a", forgot, knows(mine, closed)), verdict{Nothing, Settled}},
		"a stranger has the disk":                      {as("a", forgot, knows(mine), stranger), verdict{Wait, HolderUnknown}},
		"a stranger has the disk, and all is recorded": {as("b", forgot, knows(Promise{Epoch: e2, Primary: "b"}), stranger), verdict{Wait, HolderUnknown}},
		"a stranger is registered":                     {as("a", forgot, knows(mine), reserved(Key{}), raw(42)), verdict{Wait, HolderUnknown}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := tt.facts
			if f.Disk.Link != Attached {
				reserved(Key{}, Key{Node: "b", Epoch: e2})(f)
			}
			chain := TendRules
			if f.Wanted {
				chain = StageRules
			}
			expect(t, chain.Decide(f), tt.want)
		})
	}
	_, a := NodeRules().Next(as("a", forgot, knows(mine)))
	if v := a.Next; v.Epoch != e3 || v.Primary != (Primary{Node: "a", Boot: "boot1", Phase: Active}) || v.Clean || v.On("b").Epoch != e2 {
		t.Errorf("the record is %+v", v)
	}
	if !slices.Contains(a.Next.Keys, Key{Node: "a", Epoch: e3}) {
		t.Errorf("the keys are %v", a.Next.Keys)
	}
}

// The history of the volume is that of its newest epoch, whichever writer's epoch is mended.
func TestTheMendingOfAnOlderEpochLeavesTheHistory(t *testing.T) {
	v := volume(many, writing("b", epoch(4), Active))
	p := Promise{Epoch: e3, Primary: "a", Boot: "boot1", Lineage: later(e3, "a", at(e1, 3)).Lineage}
	opens := knowing(func(c *Copy) { c.Promise, c.Opened = p, e3 })
	_, a := NodeRules().Next(as("a", v, opens))
	if n := a.Next; n == nil || n.Epoch != epoch(4) || n.On("a").Epoch != e3 || len(n.Lineage) != len(v.Lineage) {
		t.Errorf("%v: %+v", a.Verb, a.Next)
	}
	_, a = NodeRules().Next(as("a", volume(many, writing("b", e2, Active)), opens))
	if n := a.Next; n == nil || len(n.Lineage) != len(p.Lineage) {
		t.Errorf("%v: %+v", a.Verb, a.Next)
	}
}

// The record forgets the writer when the attachment is gone, so nothing may tell later that it writes.
func TestANodeGivesItsEpochUpBeforeItsAttachmentGoes(t *testing.T) {
	v := volume(many, writing("a", e2, Fenced), writing("b", e3, Active), entry("a", func(r *Replica) { r.State = Removing }))
	open := func(f *NodeFacts) { f.Copy.Opened = e2 }
	expect(t, TendRules.Decide(as("a", v, open, reserved(Key{}, ofB))), verdict{Close, ClosingEpoch})
	expect(t, TendRules.Decide(as("a", v, open, knowing(func(c *Copy) { c.Closed = e2 }), reserved(Key{}, ofB))), verdict{Detach, NoLongerAttached})
}

func TestASessionThatEndedEndsTheEpochWhereSeveralNodesWrite(t *testing.T) {
	v := pair(Active)
	knows := func(f *NodeFacts) { f.Copy.Opened, f.Mounted = e3, true }
	forgets := pair(Active, func(v *Volume) { v.Sharing.Persistent = false })
	unread := func(f *NodeFacts) { f.Record, f.Absent = nil, false }
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"the session is registered":                  {as("b", v, knows, reserved(ofB, ofA)), verdict{Nothing, Settled}},
		"nobody knows the session":                   {as("b", v, knows, reserved(Key{}, ofB, ofA)), verdict{Close, RegistrationGone}},
		"its key is gone":                            {as("b", v, knows, reserved(Key{}, ofA)), verdict{Close, RegistrationGone}},
		"its key is the holder's":                    {as("b", v, knows, reserved(Key{}, ofA, ofB)), verdict{Close, RegistrationGone}},
		"it is registered for another epoch":         {as("b", v, knows, reserved(Key{Node: "b", Epoch: e1}, ofA)), verdict{Close, RegistrationGone}},
		"the target forgot all":                      {as("b", forgets, knows, reserved(Key{})), verdict{Close, RegistrationGone}},
		"it alone held the disk":                     {as("b", v, knows, reserved(Key{}, ofB), heldBy(ofB.Raw(), false)), verdict{Close, RegistrationGone}},
		"the record is unread":                       {as("b", v, knows, reserved(Key{}, ofA, ofB), unread), verdict{Wait, RecordUnread}},
		"the disk is away":                           {as("b", v, knows, reserved(Key{}), link(Attaching)), verdict{Nothing, Settled}},
		"it does not own the epoch":                  {as("b", volume(many, writing("a", e2, Active), writing("b", e3, Fenced)), knows, reserved(ofB, ofA)), verdict{Close, Superseded}},
		"nobody holds it, and the session was ended": {as("b", v, knows, reserved(Key{}, ofA), heldBy(0, false)), verdict{Close, RegistrationGone}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			expect(t, TendRules.Decide(tt.facts), tt.want)
			if a := UnstageRules.Decide(tt.facts); a.Verb == Register || a.Verb == Reserve {
				t.Errorf("an unmount takes the disk back: %s", a.Message())
			}
		})
	}
}
