package rules

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	lunOrdered = "a wipe is ordered as the LUN is released, and never later"
	lunForgets = "a wipe that was ordered ends when the disk is wiped and no node has it"
	wipeEpoch  = "the epoch of a wipe changes as a whole, and grows"
	wipeKey    = "the key of the node that wipes is listed before the disk sees it"
	wipeOfNode = "each node that wipes has an epoch of its own"
	wipeAnew   = "a wipe with a new epoch begins anew"
	wipeEnded  = "the outcome of a wipe stays while its node is named"
	wipeWhose  = "whose the disk was does not change"
	wipeFirst  = "a disk is wiped before its reservation is cleared"
)

// lunWipe is a released LUN whose wipe a node has; empty is none. Further changes are of the wipe.
func lunWipe(node string, change ...func(*v1alpha1.LUNWipe)) func(*v1alpha1.LUN) {
	return func(l *v1alpha1.LUN) {
		lunOf("v", v1alpha1.LUNReleased)(l)
		w := &v1alpha1.LUNWipe{Epoch: v1alpha1.Epoch{Number: 5, ID: "e"}, Node: node, Mode: v1alpha1.Filesystem}
		if l.Status.Wipe = w; node != "" {
			l.Status.State, w.Keys = v1alpha1.LUNWiping, []v1alpha1.ReservationKey{{Node: node, Epoch: w.Epoch}}
		}
		for _, c := range change {
			c(w)
		}
	}
}

func wipeIn(number int64, id string) func(*v1alpha1.LUNWipe) {
	return func(w *v1alpha1.LUNWipe) {
		if w.Epoch = (v1alpha1.Epoch{Number: number, ID: id}); w.Node != "" {
			w.Keys = append(w.Keys, v1alpha1.ReservationKey{Node: w.Node, Epoch: w.Epoch})
		}
	}
}

func wipeWith(o v1alpha1.LUNWipeOutcome) func(*v1alpha1.LUNWipe) {
	return func(w *v1alpha1.LUNWipe) { w.Outcome = o }
}

func wipeOff(w *v1alpha1.LUNWipe) { w.Node = "" }

// lunWipeChanges are changes of a wipe, each from a status that the way before has led to.
var lunWipeChanges = map[string]struct {
	way     []func(*v1alpha1.LUN)
	change  func(*v1alpha1.LUN)
	refusal string
}{
	"it is ordered":                             {way: lunWays(lunOf("v", v1alpha1.LUNBound)), change: lunWipe("")},
	"it is ordered later":                       {way: lunWays(lunOf("v", v1alpha1.LUNBound), lunOf("v", v1alpha1.LUNReleased)), change: lunWipe(""), refusal: lunOrdered},
	"it is ordered for a volume that lives":     {way: lunWays(lunOf("v", v1alpha1.LUNBound)), change: func(l *v1alpha1.LUN) { lunWipe("")(l); l.Status.State = v1alpha1.LUNBound }, refusal: lunOrdered},
	"it is ordered for a free LUN":              {way: lunWays(bare), change: lunWipe(""), refusal: lunOrdered},
	"it is called off":                          {way: wipeOrdered(), change: lunOf("v", v1alpha1.LUNReleased), refusal: lunForgets},
	"a node begins":                             {way: wipeOrdered(), change: lunWipe("n1", wipeIn(6, "f"))},
	"a node begins without an epoch of its own": {way: wipeOrdered(), change: lunWipe("n1"), refusal: wipeOfNode},
	"a node begins without a listed key":        {way: wipeOrdered(), change: lunWipe("n1", wipeIn(6, "f"), func(w *v1alpha1.LUNWipe) { w.Keys = nil }), refusal: wipeKey},
	"an earlier epoch":                          {way: wipeOrdered(), change: lunWipe("n1", wipeIn(4, "f")), refusal: wipeEpoch},
	"another epoch of the same number":          {way: wipeOrdered(), change: lunWipe("n1", wipeIn(5, "f")), refusal: wipeEpoch},
	"another node in the same epoch":            {way: wipeBegun(), change: lunWipe("n2", wipeIn(6, "f")), refusal: wipeOfNode},
	"another node in a later epoch":             {way: wipeBegun(), change: lunWipe("n2", wipeIn(7, "g"))},
	"another node goes on":                      {way: wipeBegun(), change: lunWipe("n2", wipeIn(7, "g"), func(w *v1alpha1.LUNWipe) { w.Done = 1 }), refusal: wipeAnew},
	"another node has the outcome":              {way: wipeBegun(wipeWith(v1alpha1.LUNWiped)), change: lunWipe("n2", wipeIn(7, "g"), wipeWith(v1alpha1.LUNWiped)), refusal: wipeAnew},
	"the disk shows whose it was":               {way: wipeBegun(), change: lunWipe("n1", wipeIn(6, "f"), func(w *v1alpha1.LUNWipe) { w.Proved = true })},
	"that is taken back":                        {way: wipeBegun(func(w *v1alpha1.LUNWipe) { w.Proved = true }), change: lunWipe("n1", wipeIn(6, "f")), refusal: wipeWhose},
	"the mode changes":                          {way: wipeBegun(), change: lunWipe("n1", wipeIn(6, "f"), func(w *v1alpha1.LUNWipe) { w.Mode = v1alpha1.Block }), refusal: wipeWhose},
	"it gets on":                                {way: wipeBegun(), change: lunWipe("n1", wipeIn(6, "f"), func(w *v1alpha1.LUNWipe) { w.Done = 1 << 40 })},
	"it begins anew":                            {way: wipeBegun(func(w *v1alpha1.LUNWipe) { w.Done = 2 }), change: lunWipe("n1", wipeIn(6, "f"))},
	"it ends":                                   {way: wipeBegun(), change: lunWipe("n1", wipeIn(6, "f"), wipeWith(v1alpha1.LUNWiped))},
	"it is cleared before it ends":              {way: wipeBegun(), change: lunWipe("n1", wipeIn(6, "f"), wipeWith(v1alpha1.LUNCleared)), refusal: wipeFirst},
	"it is cleared":                             {way: wipeBegun(wipeWith(v1alpha1.LUNWiped)), change: lunWipe("n1", wipeIn(6, "f"), wipeWith(v1alpha1.LUNCleared))},
	"the end is taken back":                     {way: wipeBegun(wipeWith(v1alpha1.LUNWiped)), change: lunWipe("n1", wipeIn(6, "f")), refusal: wipeEnded},
	"a failure is taken back":                   {way: wipeBegun(wipeWith(v1alpha1.LUNWipeFailed)), change: lunWipe("n1", wipeIn(6, "f"), wipeWith(v1alpha1.LUNWiped)), refusal: wipeEnded},
	"it is free while a node has it":            {way: wipeCleared(), change: lunFree, refusal: lunReleased},
	"it is free while it is not wiped":          {way: wipeBegun(wipeOff), change: lunFree, refusal: lunReleased},
	"it is free while it is wiped alone":        {way: wipeBegun(wipeWith(v1alpha1.LUNWiped), wipeOff), change: lunFree, refusal: lunReleased},
	"it is free":                                {way: wipeCleared(wipeOff), change: lunFree},
	"it is bound at once":                       {way: wipeCleared(wipeOff), change: lunOf("w", v1alpha1.LUNBound), refusal: lunPassedOn},
}

func lunWays(w ...func(*v1alpha1.LUN)) []func(*v1alpha1.LUN) { return w }

func wipeOrdered() []func(*v1alpha1.LUN) { return lunWays(lunOf("v", v1alpha1.LUNBound), lunWipe("")) }

// wipeBegun is a wipe on n1, which has changed.
func wipeBegun(change ...func(*v1alpha1.LUNWipe)) []func(*v1alpha1.LUN) {
	at := append([]func(*v1alpha1.LUNWipe){wipeIn(6, "f")}, change...)
	return append(wipeOrdered(), lunWipe("n1", wipeIn(6, "f")), lunWipe("n1", at...))
}

func wipeCleared(change ...func(*v1alpha1.LUNWipe)) []func(*v1alpha1.LUN) {
	at := append([]func(*v1alpha1.LUNWipe){wipeIn(6, "f"), wipeWith(v1alpha1.LUNCleared)}, change...)
	return append(wipeBegun(wipeWith(v1alpha1.LUNWiped)), lunWipe("n1", wipeIn(6, "f"), wipeWith(v1alpha1.LUNCleared)), lunWipe("n1", at...))
}

func lunFree(l *v1alpha1.LUN) { l.Status = v1alpha1.LUNStatus{State: v1alpha1.LUNAvailable} }

func TestAReleasedLUNIsFreeOnlyAfterItsWipe(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range lunWipeChanges {
		t.Run(name, func(t *testing.T) {
			l := lunOn(t, env, tc.way...)
			tc.change(l)
			expect(t, env.Client.Status().Update(t.Context(), l), tc.refusal)
		})
	}
}

func lunOn(t *testing.T, env *apitest.Environment, way ...func(*v1alpha1.LUN)) *v1alpha1.LUN {
	t.Helper()
	l := newLUN(t)
	if err := env.Client.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for i, step := range way {
		step(l)
		if err := env.Client.Status().Update(t.Context(), l); err != nil {
			t.Fatalf("step %d of the way: %v", i, err)
		}
	}
	return l
}

// lunAgentWrites are what the agent of n1 writes.
var lunAgentWrites = map[string]struct {
	way     []func(*v1alpha1.LUN)
	change  func(*v1alpha1.LUN)
	refusal string
}{
	"how far it is":                {way: wipeBegun(), change: wipeOf(func(w *v1alpha1.LUNWipe) { w.Done, w.Problem = 7, "slow" })},
	"the end":                      {way: wipeBegun(), change: wipeOf(wipeWith(v1alpha1.LUNWiped))},
	"its name comes off":           {way: wipeCleared(), change: wipeOf(wipeOff)},
	"its name comes off too early": {way: wipeBegun(), change: wipeOf(wipeOff), refusal: lunAgentOff},
	"another node": {way: wipeBegun(), change: wipeOf(func(w *v1alpha1.LUNWipe) {
		w.Node, w.Epoch = "n2", v1alpha1.Epoch{Number: 7, ID: "g"}
		w.Keys = append(w.Keys, v1alpha1.ReservationKey{Node: "n2", Epoch: w.Epoch})
	}), refusal: lunAgentWipe},
	"a key": {way: wipeBegun(), change: wipeOf(func(w *v1alpha1.LUNWipe) {
		w.Keys = append(w.Keys, v1alpha1.ReservationKey{Node: "n2", Epoch: w.Epoch})
	}), refusal: lunAgentWipe},
	"no keys":                 {way: wipeBegun(), change: wipeOf(func(w *v1alpha1.LUNWipe) { w.Keys = nil }), refusal: wipeKey},
	"the state":               {way: wipeBegun(), change: func(l *v1alpha1.LUN) { l.Status.Message = "free" }, refusal: lunAgentStatus},
	"a free LUN":              {way: wipeCleared(wipeOff), change: lunFree, refusal: lunAgentNode},
	"another node's wipe":     {way: append(wipeBegun(), lunWipe("n2", wipeIn(7, "g"))), change: wipeOf(func(w *v1alpha1.LUNWipe) { w.Done = 7 }), refusal: lunAgentNode},
	"a wipe that no node has": {way: wipeOrdered(), change: wipeOf(func(w *v1alpha1.LUNWipe) { w.Problem = "mine" }), refusal: lunAgentNode},
}

var (
	lunAgentNode   = denied("berth-agent-luns", "the agent of n1 may write only the wipe that is ordered from its node")
	lunAgentStatus = denied("berth-agent-luns", "an agent writes only the wipe of a LUN's status")
	lunAgentWipe   = denied("berth-agent-luns", "an agent writes only node, proved, done, outcome and problem of a wipe")
	lunAgentOff    = denied("berth-agent-luns", "an agent takes its node off a wipe that has ended there, and names no other one")
	unboundLUNs    = denied("berth-agent-luns", "the token is not bound to a pod on a node")
)

func wipeOf(change func(*v1alpha1.LUNWipe)) func(*v1alpha1.LUN) {
	return func(l *v1alpha1.LUN) { change(l.Status.Wipe) }
}

func TestAnAgentWritesTheWipeThatIsOrderedFromItsNode(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range lunAgentWrites {
		t.Run(name, func(t *testing.T) {
			l := lunOn(t, env, tc.way...)
			tc.change(l)
			expect(t, env.Agent(t, "n1").Status().Update(t.Context(), l), tc.refusal)
		})
	}
	l := lunOn(t, env, wipeBegun()...)
	l.Status.Wipe.Done = 7
	expect(t, env.UnboundAgent(t).Status().Update(t.Context(), l), unboundLUNs)
}

// refusedLUNs returns the refusals of wipes.
func refusedLUNs() map[string]bool {
	seen := map[string]bool{unboundLUNs: true} // see TestAnAgentWritesTheWipeThatIsOrderedFromItsNode
	for _, tc := range lunWipeChanges {
		seen[tc.refusal] = true
	}
	for _, tc := range lunAgentWrites {
		seen[tc.refusal] = true
	}
	return seen
}
