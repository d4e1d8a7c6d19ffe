package ownership_test

import (
	"testing"
	"time"

	. "berth.dev/berth/internal/ownership"
)

func wants(nodes ...string) func(*ControllerFacts) {
	return func(f *ControllerFacts) { f.Wanted = nodes }
}

func machine(name string, edit func(*Machine)) func(*ControllerFacts) {
	return func(f *ControllerFacts) {
		for i := range f.Nodes {
			if f.Nodes[i].Name == name {
				edit(&f.Nodes[i])
				return
			}
		}
		m := Machine{Name: name, Fits: true, Slots: 1}
		edit(&m)
		f.Nodes = append(f.Nodes, m)
	}
}

func away(node string) func(*ControllerFacts) {
	return machine(node, func(m *Machine) { m.Lost, m.LostFor = true, Silence })
}

func lostNow(m *Machine) { m.Lost, m.LostFor = true, Silence-1 }

func empty(v *Volume)          { v.Replicas = nil }
func there(*Machine)           {}
func full(m *Machine)          { m.Slots = 0 }
func makesRoom(m *Machine)     { m.Slots, m.MakesRoom = 0, true }
func inTheWay(m *Machine)      { m.GiveWay = true }
func yields(v *Volume)         { v.Sharing.Yields = true }
func leaves(m *Machine)        { m.Fits, m.Leaving = false, true }
func alive(f *ControllerFacts) { f.Witnesses = nil }

// succeeded is a volume with one attachment more than its factor, on node d.
func succeeded(s State, edits ...func(*Volume)) *Volume {
	return volume(append([]func(*Volume){owned(Active), shared, func(v *Volume) {
		v.Sharing.MaxShares = 4
		v.Replicas = append(v.Replicas, Replica{Node: "d", State: s})
	}}, edits...)...)
}

func TestTheControllerKeepsAttachments(t *testing.T) {
	used := volume(owned(Active), shared)
	short := volume(owned(Active), shared, func(v *Volume) { v.Replicas = v.Replicas[:2] })
	bad := func(r *Replica) { r.State, r.Tries = Failed, 2 }
	due := func(v *Volume) { v.ExpireAt = now }
	roomy := func(v *Volume) { v.Sharing.MaxShares = 4 }
	tests := map[string]struct {
		facts *ControllerFacts
		want  verdict
		node  string
	}{
		"one is made for the node of a pod":                          {overseeing(volume(shared, empty), wants("b")), verdict{Record, WantedHere}, "b"},
		"one that was about to go is counted on again":               {overseeing(volume(shared, state("b", Removing)), wants("b")), verdict{Record, WantedHere}, "b"},
		"none is made where one is being made":                       {overseeing(volume(shared, state("b", Failed)), wants("b")), verdict{Nothing, Settled}, ""},
		"none is made for a volume that is being deleted":            {overseeing(volume(shared, empty, func(v *Volume) { v.Deleting = true }), wants("b")), verdict{Nothing, Settled}, ""},
		"a pod waits for a slot of its node":                         {overseeing(volume(shared, empty), wants("b"), machine("b", full)), verdict{Wait, NoFreeSlot}, "b"},
		"a standby makes room when all shares are taken":             {overseeing(volume(shared), wants("d"), machine("d", there)), verdict{Record, WantedHere}, "c"},
		"no second one makes room while one is on its way out":       {overseeing(volume(shared, state("c", Removing)), wants("d"), machine("d", there)), verdict{Wait, NoFreeShare}, "d"},
		"one on its way out on a node that is away gives no room":    {overseeing(volume(shared, state("c", Removing)), wants("d"), machine("d", there), away("c")), verdict{Record, WantedHere}, "b"},
		"one on a node that is away makes no room":                   {overseeing(volume(shared), wants("d"), machine("d", there), away("c")), verdict{Record, WantedHere}, "b"},
		"one on a node that is lost may be back soon":                {overseeing(volume(shared, state("c", Removing)), wants("d"), machine("d", there), machine("c", lostNow)), verdict{Wait, NoFreeShare}, "d"},
		"all are on nodes that are away":                             {overseeing(volume(shared), wants("d"), machine("d", there), away("a"), away("b"), away("c")), verdict{Wait, NoFreeShare}, "d"},
		"the entry of an owner stays":                                {overseeing(volume(owned(Active), shared, state("a", Gone)), alive), verdict{Nothing, Settled}, ""},
		"the owner makes no room":                                    {overseeing(used, alive, wants("b", "c", "d"), machine("d", there)), verdict{Wait, NoFreeShare}, "d"},
		"a standby gives its slot away if its class allows it":       {overseeing(volume(owned(Active), shared, yields), alive, machine("b", inTheWay)), verdict{Record, GivingWay}, "b"},
		"a standby keeps its slot if its class does not allow it":    {overseeing(used, alive, machine("b", inTheWay)), verdict{Nothing, Settled}, ""},
		"the owner keeps its slot":                                   {overseeing(volume(owned(Active), shared, yields), alive, machine("a", inTheWay)), verdict{Nothing, Settled}, ""},
		"a wanted one keeps its slot":                                {overseeing(volume(owned(Active), shared, yields), alive, wants("b"), machine("b", inTheWay)), verdict{Nothing, Settled}, ""},
		"all of an unused volume get a deadline":                     {overseeing(volume(shared)), verdict{Record, Unused}, ""},
		"all stay until the deadline":                                {overseeing(volume(shared, func(v *Volume) { v.ExpireAt = now.Add(1) })), verdict{Nothing, Settled}, ""},
		"all go at the deadline":                                     {overseeing(volume(shared, due)), verdict{Record, Unused}, "a"},
		"a pod ends the deadline":                                    {overseeing(volume(shared, due), wants("b")), verdict{Record, WantedHere}, "b"},
		"an owner has no deadline":                                   {overseeing(volume(owned(Active), shared, due), alive), verdict{Nothing, Settled}, ""},
		"a missing standby is made":                                  {overseeing(short, alive), verdict{Record, TooFewReplicas}, "c"},
		"no standby is made on a node without a slot":                {overseeing(short, alive, machine("c", full)), verdict{Nothing, Settled}, ""},
		"no standby is made by a controller that has just begun":     {overseeing(short, alive, func(f *ControllerFacts) { f.Watching = 0 }), verdict{Wait, BrakeHeld}, ""},
		"a standby that failed is replaced elsewhere":                {overseeing(volume(owned(Active), shared, roomy, entry("b", bad)), alive, machine("d", there)), verdict{Record, TooFewReplicas}, "d"},
		"a standby that failed makes room if there is another place": {overseeing(volume(owned(Active), shared, entry("b", bad)), alive, machine("d", there)), verdict{Record, AttachmentFailed}, ""},
		"a standby that failed stays if there is no other place":     {overseeing(volume(owned(Active), shared, entry("b", bad)), alive), verdict{Nothing, Settled}, ""},
		"a standby on a node that is leaving gets a successor":       {overseeing(volume(owned(Active), shared, roomy), alive, machine("b", leaves), machine("d", there)), verdict{Record, TooFewReplicas}, "d"},
		"it stays while its successor is not ready":                  {overseeing(succeeded(Syncing), alive, machine("b", leaves), machine("d", there)), verdict{Nothing, Settled}, ""},
		"it stays while its successor's node is lost":                {overseeing(succeeded(Ready), alive, machine("b", leaves), machine("d", there), lost("d")), verdict{Nothing, Settled}, ""},
		"it goes when its successor is ready":                        {overseeing(succeeded(Ready), alive, machine("b", leaves), machine("d", there)), verdict{Record, TooManyReplicas}, "b"},
		"it goes at once if it does not work either":                 {overseeing(succeeded(Syncing, state("b", Syncing)), alive, machine("b", leaves), machine("d", there)), verdict{Record, TooManyReplicas}, "b"},
		"it stays while a pod there wants the volume":                {overseeing(succeeded(Ready), alive, machine("b", leaves), machine("d", there), wants("b")), verdict{Nothing, Settled}, ""},
		"it stays while all shares are taken":                        {overseeing(used, alive, machine("b", leaves), machine("d", there)), verdict{Nothing, Settled}, ""},
		"it stays if there is no other place":                        {overseeing(volume(owned(Active), shared, roomy), alive, machine("b", leaves)), verdict{Nothing, Settled}, ""},
		"it makes room for a pod before others":                      {overseeing(volume(shared), wants("d"), machine("b", leaves), machine("d", there)), verdict{Record, WantedHere}, "b"},
		"the owner's node is leaving, and one more is made":          {overseeing(volume(owned(Active), shared, roomy), alive, machine("a", leaves), machine("d", there)), verdict{Record, TooFewReplicas}, "d"},
		"the owner stays where it is leaving":                        {overseeing(succeeded(Ready), alive, machine("a", leaves), machine("d", there)), verdict{Nothing, Settled}, ""},
		"its node stays after all, and one goes again":               {overseeing(succeeded(Ready), alive, machine("d", there)), verdict{Record, TooManyReplicas}, "d"},
		"a copy on a node that is leaving stays":                     {overseeing(volume(owned(Active)), alive, machine("b", leaves), machine("d", there)), verdict{Nothing, Settled}, ""},
		"one that is wanted is no surplus":                           {overseeing(volume(owned(Active), shared, func(v *Volume) { v.Factor = 2 }), alive, wants("c")), verdict{Record, TooManyReplicas}, "b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := OverseeRules.Decide(tt.facts)
			expect(t, a, tt.want)
			if tt.node != "" && a.Node != tt.node && !removes(tt.facts.Record, a.Next, tt.node) {
				t.Errorf("it is about %q, want %q", a.Node, tt.node)
			}
		})
	}
}

func removes(old, next *Volume, node string) bool {
	if next == nil {
		return false
	}
	was, _ := old.Replica(node)
	is, _ := next.Replica(node)
	return was.State != Removing && is.State == Removing
}

func TestADeletedVolumeLosesAllReplicasButTheOwners(t *testing.T) {
	deleting := func(v *Volume) { v.Deleting = true }
	for name, v := range map[string]*Volume{"released": volume(deleting), "owned by a": volume(owned(Active), deleting)} {
		t.Run(name, func(t *testing.T) {
			next := OverseeRules.Decide(overseeing(v)).Next
			for _, r := range next.Replicas {
				if owner := r.Node == "a" && v.Primary.Phase.Open(); (r.State == Removing) == owner {
					t.Errorf("the replica on %s is %v", r.Node, r.State)
				}
			}
			expect(t, OverseeRules.Decide(overseeing(next)), verdict{Nothing, Settled})
		})
	}
}

func TestAControllerThatHasJustBegunPromotesNobody(t *testing.T) {
	begun := func(f *ControllerFacts) { f.Watching = WatchFirst - time.Second }
	for name, f := range map[string]*ControllerFacts{
		"by a power record":           overseeing(volume(owned(Active)), proof(PowerOff), begun),
		"by a request to shut it out": overseeing(volume(owned(Active), shared), begun),
	} {
		t.Run(name, func(t *testing.T) { expect(t, OverseeRules.Decide(f), verdict{Wait, BrakeHeld}) })
	}
	expect(t, OverseeRules.Decide(overseeing(volume(owned(Active)), proof(OutOfService), begun)), verdict{Record, WriterFenced})
}

func TestATargetThatMayForgetFencesNobody(t *testing.T) {
	forgetful := func(v *Volume) { v.Sharing.Persistent = false }
	shutOut := entry("b", func(r *Replica) { r.Fenced = e2 })
	expect(t, OverseeRules.Decide(overseeing(volume(owned(Active), shared, forgetful))), verdict{Wait, NoProof})
	expect(t, OverseeRules.Decide(overseeing(volume(owned(Active), shared, forgetful, shutOut))), verdict{Wait, NoProof})
	expect(t, OverseeRules.Decide(overseeing(volume(owned(Active), shared, forgetful), proof(PowerOff))), verdict{Record, WriterFenced})
}

func TestAnotherStandbyIsAskedWhenTheFirstLostItsAttachment(t *testing.T) {
	v := volume(owned(Active), shared, state("b", Syncing), func(v *Volume) { v.FenceRequest = FenceRequest{"b", e2} })
	if next := OverseeRules.Decide(overseeing(v)).Next; next == nil || next.FenceRequest != (FenceRequest{"c", e2}) {
		t.Errorf("record %+v", next)
	}
}

func TestOneAttachmentYieldsItsSlot(t *testing.T) {
	standby := func(name string, edits ...func(*SlotUse)) SlotUse {
		u := SlotUse{Volume: name, Standby: true, Yields: true, State: Ready, Others: 1}
		for _, edit := range edits {
			edit(&u)
		}
		return u
	}
	tests := map[string]struct {
		uses []SlotUse
		want string
	}{
		"none of an owner":                     {[]SlotUse{standby("x", func(u *SlotUse) { u.Standby = false })}, ""},
		"none whose class does not allow it":   {[]SlotUse{standby("x", func(u *SlotUse) { u.Yields = false })}, ""},
		"none while one is on its way out":     {[]SlotUse{standby("x"), standby("y", func(u *SlotUse) { u.State = Removing })}, ""},
		"one that failed":                      {[]SlotUse{standby("x"), standby("y", func(u *SlotUse) { u.State = Failed })}, "y"},
		"one that is not ready":                {[]SlotUse{standby("x"), standby("y", func(u *SlotUse) { u.State = Syncing })}, "y"},
		"one of the volume with most standbys": {[]SlotUse{standby("x"), standby("y", func(u *SlotUse) { u.Others = 2 })}, "y"},
		"the first by name among equals":       {[]SlotUse{standby("y"), standby("x")}, "x"},
		"one that failed before one not ready": {[]SlotUse{standby("x", func(u *SlotUse) { u.State = Syncing }), standby("y", func(u *SlotUse) { u.State = Failed })}, "y"},
		"none of no attachments":               {nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, ok := Yielding(tt.uses); got != tt.want || ok != (tt.want != "") {
				t.Errorf("Yielding() = %q, %t, want %q", got, ok, tt.want)
			}
		})
	}
}
