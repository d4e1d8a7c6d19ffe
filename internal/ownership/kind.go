package ownership

import "slices"

// Kind says what kind of replicas the volume has. Every difference between the
// kinds is a field of Traits; the rules ask the traits, never the kind.
type Kind int

const (
	// OneCopy is a volume with a single local copy. Its node owns it by holding it.
	OneCopy Kind = iota
	// Snapshots is a volume of full copies that follow the primary by snapshots.
	Snapshots
	// Attachments is one shared disk, attached to several nodes.
	Attachments
)

func (k Kind) String() string { return [...]string{"OneCopy", "Snapshots", "Attachments"}[k] }

// Traits are the differences between the kinds.
type Traits struct {
	// Owned: Stage takes an epoch by compare-and-swap. A one-copy volume needs
	// none: no other node can own it.
	Owned bool
	// Data: every replica holds data of its own, which can be old, diverge, be
	// lost, and must be counted before one is removed.
	Data bool
	// Reserves: the device itself refuses writers without the reservation, so a
	// takeover ends with taking it, and only then is anything mounted.
	Reserves bool
	// Attaches: replicas are attachments. They cost shares of the disk and slots of
	// nodes, and hold nothing. One is made for each node that wants the volume, and
	// all go when the volume has not been used for a while.
	Attaches bool
	// Proofs that the old writer is stopped which this kind accepts.
	Proofs []ProofKind
}

// A paused machine outlives its self-fence for a moment when it wakes. It then
// writes into its own copy. That is harmless, because no other replica will take
// the write. On a shared disk the same write lands in the data of all nodes. So the
// contract is no proof there, and the disk must have been asked.
var traits = [...]Traits{
	OneCopy:     {Data: true},
	Snapshots:   {Owned: true, Data: true, Proofs: []ProofKind{Stopped, PowerOff, OutOfService, SelfFenced}},
	Attachments: {Owned: true, Reserves: true, Attaches: true, Proofs: []ProofKind{Stopped, PowerOff, OutOfService, Reservation}},
}

// Traits returns the traits of the kind.
func (k Kind) Traits() *Traits { return &traits[k] }

func (t *Traits) accepts(kind ProofKind) bool {
	return slices.Contains(t.Proofs, kind)
}
