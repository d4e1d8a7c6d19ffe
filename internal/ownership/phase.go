package ownership

// Phase is the state of the primary. The chart, with the only writer of each edge:
//
//	                  Stage                Stage
//	(created) ─► Released ─────► Preparing ─────► Active
//	               ▲  ▲   ▲        │   │            │ │
//	               │  │   └────────┘   │            │ │
//	               │  │    Unstage     │            │ │
//	               │  └────────────────┼────────────┘ │   Unstage
//	               │                   │   controller │
//	    Stage ─► Preparing ◄── Fenced ◄┴──────────────┘   with proof
//
// Preparing means that the epoch is open and nothing has been written in it:
// Active is recorded before the volume becomes writable. So giving up while
// Preparing loses nothing and leaves the recovery point where it was.
type Phase int

const (
	// Released: no node may write; the recovery point is the final snapshot.
	Released Phase = iota
	// Preparing: Node has opened the epoch and brings its replica to the recovery point.
	Preparing
	// Active: Node may write.
	Active
	// Fenced: the writer of the epoch can provably not write any more.
	Fenced
)

func (p Phase) String() string { return [...]string{"Released", "Preparing", "Active", "Fenced"}[p] }

// Open tells whether the epoch has an owner.
func (p Phase) Open() bool { return p == Preparing || p == Active }

var phaseEdges = map[[2]Phase]bool{
	{Released, Preparing}: true, // Stage takes over
	{Fenced, Preparing}:   true, // Stage takes over after a failover
	{Preparing, Active}:   true, // Stage, once its replica is ready
	{Preparing, Released}: true, // Unstage before anything was written
	{Active, Released}:    true, // Unstage
	{Preparing, Fenced}:   true, // controller with proof
	{Active, Fenced}:      true, // controller with proof
}

// MayFollow tells whether the record may go from one phase to another. Repairing
// a record that a restored backup threw back is the one change outside the chart.
func (p Phase) MayFollow(old Phase) bool { return p == old || phaseEdges[[2]Phase{old, p}] }
