package ownership_test

import (
	"testing"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

// held is a node on which a pod has the volume in epoch 2, which the node gave up.
func held(v *Volume, edits ...func(*NodeFacts)) *NodeFacts {
	over := func(f *NodeFacts) {
		f.Held = true
		f.Copy = Copy{Promise: Promise{Epoch: e2, Primary: "a", Boot: "boot1"}, Opened: e2, Closed: e2}
	}
	return on("a", v, append([]func(*NodeFacts){over, alone}, edits...)...)
}

func TestNothingBeginsWhileAPodHoldsAnEpochThatIsOver(t *testing.T) {
	mine := volume(shared, owned(Active))
	theirs := volume(shared, owned(Active), func(v *Volume) { v.Primary.Node = "b" })
	for name, test := range map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"the record says that the attachment is of no use":   {held(mine), verdict{Record, StillHeld}},
		"a kubelet that wants the volume changes nothing":    {held(mine, wanted), verdict{Record, StillHeld}},
		"the record is told once":                            {held(volume(shared, owned(Active), state("a", Syncing))), verdict{Wait, StillHeld}},
		"an epoch that was fenced needs no such word":        {held(volume(shared, owned(Fenced))), verdict{Wait, StillHeld}},
		"an epoch that was released needs none either":       {held(volume(shared, owned(Released))), verdict{Wait, StillHeld}},
		"another node's epoch is no concern of this one":     {held(theirs), verdict{Wait, StillHeld}},
		"a later epoch of this node goes on":                 {held(volume(shared, func(v *Volume) { v.Epoch, v.Primary.Phase = e3, Active })), verdict{Wait, StillHeld}},
		"the record of a copy tells of data, and not of use": {held(volume(owned(Active)), func(f *NodeFacts) { f.Copy.Exists = true }), verdict{Wait, StillHeld}},
		"a record that cannot be read is waited for":         {held(mine, unread), verdict{Wait, RecordUnread}},
		"without a record the pod is waited for":             {held(nil), verdict{Wait, StillHeld}},
		"a record from a backup is mended first":             {held(volume(shared)), verdict{Record, RecordBehind}},
	} {
		t.Run(name, func(t *testing.T) {
			answer, do := NodeRules().Next(test.facts)
			expect(t, do, test.want)
			expect(t, answer, test.want)
			if do.Verb != Record || do.Reason != StillHeld {
				return
			}
			if e, _ := do.Next.Replica("a"); e.State != Syncing || e.Unstaged == e2 {
				t.Errorf("the entry says %+v: the node has not stopped yet", e)
			}
		})
	}
}

func TestAFilesystemThatHasShutItselfDownIsGivenUp(t *testing.T) {
	v, mine := volume(shared, owned(Active)), Key{Node: "a", Epoch: e2}
	down := func(f *NodeFacts) { f.ShutDown = true }
	knows := with(promised(v), opened(e2))
	over := with(promised(v), opened(e2), func(c *Copy) { c.Closed = e2 })
	for name, test := range map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"the epoch is closed first":              {on("a", v, knows, holding(mine), mounted, down), verdict{Close, FilesystemShutDown}},
		"also while the path is away":            {on("a", v, knows, holding(mine), mounted, down, link(Detached)), verdict{Close, FilesystemShutDown}},
		"then it is unmounted":                   {on("a", v, over, holding(mine), mounted, down), verdict{Unmount, ClosingEpoch}},
		"then the volume is released":            {on("a", v, over, holding(mine)), verdict{GiveUp, NotWanted}},
		"a filesystem that is well stays":        {on("a", v, knows, holding(mine), mounted), verdict{Nothing, Settled}},
		"the record of another epoch goes first": {on("a", volume(shared, owned(Fenced)), knows, holding(mine), mounted, down), verdict{Close, Superseded}},
	} {
		t.Run(name, func(t *testing.T) { expect(t, TendRules.Decide(test.facts), test.want) })
	}
	if a := StageRules.Decide(on("a", v, knows, holding(mine), mounted, wanted, down)); a.Verb != Close {
		t.Errorf("a kubelet that asks again gets %v (%s)", a.Verb, a.Message())
	}
}

// A node whose path to the disk stays away cannot prove that nothing of the epoch is on its way, so it releases nothing.
func TestAWriterThatGaveItsEpochUpAndCannotReleaseItIsShutOut(t *testing.T) {
	alive := func(f *ControllerFacts) { f.Witnesses = []Witness{{"b", true}, {"c", true}} }
	says := func(opened, closed lineage.Epoch) func(*ControllerFacts) {
		return func(f *ControllerFacts) {
			f.Peers = append(f.Peers, Peer{Node: "a", Copy: Copy{Opened: opened, Closed: closed}})
		}
	}
	over, noUse := says(e2, e2), state("a", Syncing)
	onA := func(v *Volume) { v.Replicas = v.Replicas[:1] }
	disk := volume(owned(Active), shared, noUse)
	for name, test := range map[string]struct {
		facts *ControllerFacts
		want  verdict
	}{
		"a standby is asked": {overseeing(disk, alive, over), verdict{Record, FenceRequested}},
		"and is waited for":  {overseeing(volume(owned(Active), shared, noUse, func(v *Volume) { v.FenceRequest = FenceRequest{"b", e2} }), alive, over), verdict{Wait, FenceRequested}},
		"a pod's node gets the disk, to be asked next": {overseeing(volume(owned(Active), shared, noUse, onA), alive, over, func(f *ControllerFacts) {
			f.Wanted = []string{"c"}
		}), verdict{Record, WantedHere}},
		"a standby is made, to be asked next":             {overseeing(volume(owned(Active), shared, noUse, onA), alive, over), verdict{Record, TooFewReplicas}},
		"it has a later epoch":                            {overseeing(disk, alive, says(e3, e3)), verdict{Nothing, Settled}},
		"the node does not answer":                        {overseeing(disk, alive), verdict{Nothing, Settled}},
		"the epoch goes on":                               {overseeing(disk, alive, says(e2, e1)), verdict{Nothing, Settled}},
		"it gave an earlier epoch up":                     {overseeing(disk, alive, says(e1, e1)), verdict{Nothing, Settled}},
		"its attachment is of use: it is about to let go": {overseeing(volume(owned(Active), shared), alive, over), verdict{Nothing, Settled}},
		"no standby is ready":                             {overseeing(volume(owned(Active), shared, noUse, state("b", Syncing), state("c", Failed)), alive, over), verdict{Nothing, Settled}},
		"the target may forget it":                        {overseeing(volume(owned(Active), shared, noUse, func(v *Volume) { v.Sharing.Persistent = false }), alive, over), verdict{Nothing, Settled}},
		"a person decides about failovers":                {overseeing(volume(owned(Active), shared, noUse, func(v *Volume) { v.Failover.Automatic = false }), alive, over), verdict{Nothing, Settled}},
		"many nodes look lost":                            {overseeing(disk, alive, over, lost("b", "c")), verdict{Wait, BrakeHeld}},
		"it looks dead as well":                           {overseeing(disk, over, lost("b", "c")), verdict{Wait, BrakeHeld}},
		"its copy has data":                               {overseeing(volume(owned(Active), noUse), alive, over), verdict{Nothing, Settled}},
		"it was released":                                 {overseeing(volume(owned(Released), shared, noUse), alive, over), verdict{Record, Unused}},
		"it is one of several writers":                    {overseeing(volume(many, owned(Active), writing("b", e3, Active), noUse).On("a"), alive, over), verdict{Record, FenceRequested}},
	} {
		t.Run(name, func(t *testing.T) { expect(t, OverseeRules.Decide(test.facts), test.want) })
	}
}
