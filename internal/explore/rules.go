package explore

import (
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// Rules is everything the simulated processes decide with: the product's own
// decision functions, and the shell's conduct around them. A mutant is a Rules
// in which one of them is wrong.
type Rules struct {
	ownership.Node
	Oversee ownership.Chain[ownership.ControllerFacts]
	// Each lets a controller's rules decide about each writer.
	Each     func(rules ownership.Chain[ownership.ControllerFacts], f *ownership.ControllerFacts, about func(*ownership.ControllerFacts, string)) ownership.Action
	Receive  func(c *ownership.Copy, mounted bool, s *ownership.Stream) (bool, ownership.Why)
	Received func(c *ownership.Copy, s *ownership.Stream) ownership.Copy
	Confirm  func(c *ownership.Copy, asker string, p lineage.Point, now time.Time) (ownership.Hold, bool)
	MustStop func(c *ownership.Contact) (bool, ownership.Why)
	Contract func(l *ownership.Leases) (ownership.Proof, bool)
	Conduct  Conduct
	// Journal, if not nil, is told of every write of the record by a process.
	Journal func(Written)
}

// Conduct is the behaviour that the rules require of the shell. The zero value is
// the product's behaviour; each field is one mistake.
type Conduct struct {
	// CachedReads: decisions use whatever version a watch has delivered.
	CachedReads bool
	// BlindWrites: records are written without comparing the version.
	BlindWrites bool
	// NoIDs: epochs have numbers only.
	NoIDs bool
	// OldAnswers: a peer's answer from before the record was read is good enough.
	OldAnswers bool
	// OldProofs: evidence seen once is used for ever.
	OldProofs bool
	// StoredIsHeard: a node whose renewal is stored is taken for one that knows it.
	StoredIsHeard bool
	// CountsAsHeard: a node counts its majority only over the set of which it knows that it is stored.
	CountsAsHeard bool
	// ForgetsLapses: a node that lapsed goes on in an epoch that it had not opened yet.
	ForgetsLapses bool
	// BlindReserve: the reservation is taken whichever node holds it.
	BlindReserve bool
	// FreesReservation: a node that unmounts gives the reservation up.
	FreesReservation bool
	// LeavesCommands: unmounting does not wait for commands that the disk has not answered.
	LeavesCommands bool
	// TipsAge: the age of a peer's copy is that of its very newest snapshot.
	TipsAge bool
	// WordOfMouth: replicas are not asked; the recorded points are believed.
	WordOfMouth bool
	// ForgetfulPromises: promises live in memory only.
	ForgetfulPromises bool
}

// Berth returns the product's rules.
func Berth() *Rules {
	return &Rules{
		Node:    ownership.NodeRules(),
		Oversee: ownership.OverseeRules, Each: ownership.Oversee,
		Receive: ownership.Receive, Received: ownership.Received, Confirm: ownership.Confirm,
		MustStop: ownership.MustStop, Contract: ownership.ContractProves,
	}
}
