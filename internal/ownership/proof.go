package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
)

// ProofKind is a reason to say that a node cannot write any more. Only the kinds
// that a volume's traits list are proofs; the others have names so that a
// refusal can explain why they are none.
type ProofKind int

const (
	// Stopped: the node itself recorded that it will not write into the epoch again.
	Stopped ProofKind = iota
	// PowerOff: a power or hypervisor record says that this boot has ended.
	PowerOff
	// OutOfService: an administrator's taint. It must be read after the record:
	// the node may have come back, been cleared and taken over in between.
	OutOfService
	// Reservation: the device has been told to refuse the writer of this epoch.
	Reservation
	// SelfFenced: the node's contract to stop itself has run out.
	SelfFenced
	// LeaseExpired, NodeDeleted and Unreachable prove nothing: a paused machine
	// has all three and writes when it wakes.
	LeaseExpired
	NodeDeleted
	Unreachable
)

var proofNames = [...]string{"Stopped", "PowerOff", "OutOfService", "Reservation", "SelfFenced", "LeaseExpired", "NodeDeleted", "Unreachable"}

func (k ProofKind) String() string { return proofNames[k] }

// deliberate proofs are explicit statements of the node itself or of an
// administrator about one node. The brake against mistaken mass failover does not
// apply to them.
func (k ProofKind) deliberate() bool { return k == Stopped || k == OutOfService }

// Proof is evidence about one node, gathered after the record was read.
type Proof struct {
	Kind ProofKind
	Node string
	// Boot the proof is about, for PowerOff and SelfFenced.
	Boot string
	// Epoch the proof is about, for Stopped and Reservation.
	Epoch lineage.Epoch
}

// covers tells whether p proves that the record's primary cannot write.
func (p *Proof) covers(v *Volume) bool {
	if p.Node != v.Primary.Node || !v.Kind.Traits().accepts(p.Kind) {
		return false
	}
	switch p.Kind {
	case PowerOff, SelfFenced:
		return p.Boot == v.Primary.Boot
	case Stopped:
		return p.Epoch == v.Epoch
	case Reservation: // a target that may forget it has fenced no node
		return p.Epoch == v.Epoch && v.Sharing.Persistent
	default:
		return true
	}
}

// recordedProofs are the proofs that the record itself carries. Whether they are about this epoch, covers tells.
func recordedProofs(v *Volume) []Proof {
	var out []Proof
	for i := range v.Replicas {
		e := &v.Replicas[i]
		out = append(out, Proof{Kind: Stopped, Node: e.Node, Epoch: e.Unstaged}, Proof{Kind: Reservation, Node: v.Primary.Node, Epoch: e.Fenced})
	}
	return out
}

// The self-fence contract. A node that has not renewed its lease for SelfFenceAfter
// stops its writers. If it cannot do so any more, a watchdog resets it. The
// controller waits longer, by the drift of two clocks and the time the watchdog
// needs.
const (
	SelfFenceAfter  = 20 * time.Second
	SelfFenceMargin = 10 * time.Second
)

// AwayAfter is for how long a node must have had no answer to a renewal to exempt a peer, and not to
// count as steady. It is the same time for both, so that no node does both. It is less than
// SelfFenceAfter, because nodes do not renew at the same moments: when the API goes away, a peer may
// have had its last answer RenewOpen and a second (package guard) later than this node.
const AwayAfter = 14 * time.Second

// Members names a set of storage nodes. A node writes into its lease the set over which it counts
// its majority, with each renewal, and counts over that set until the next renewal. Two majorities
// of one set share a member. Majorities of different sets need not: if Nodes are deleted during a
// partition, the rest may be a majority of itself and have no member in common with the majority
// that exempts the old primary.
type Members string

// MembersOf returns the name of the set for a node's lease: the storage nodes and the node itself,
// even if its Node was deleted. A node counts itself in its majority, so it must be in the set.
func MembersOf(node string, storage []string) Members {
	h := sha256.New()
	for _, n := range slices.Compact(slices.Sorted(slices.Values(append([]string{node}, storage...)))) {
		fmt.Fprintf(h, "%d %s\n", len(n), n)
	}
	return Members(hex.EncodeToString(h.Sum(nil)[:16]))
}

// Contact is a node's knowledge of its own connection.
type Contact struct {
	// SinceRenewal is the time since the own lease was last renewed, by the
	// node's boot-time clock, which runs on while the machine is paused.
	SinceRenewal time.Duration
	// Sets are those over which the node counts its majority. Each has the names of storage nodes,
	// and this node's. The first is the set that the last renewal with an answer names. The others
	// were named by renewals since then: the API server may have stored any of them.
	Sets [][]string
	// Peers are the other nodes that answer now.
	Peers []PeerContact
}

// PeerContact is a peer's own answer.
type PeerContact struct {
	Node string
	// SinceRenewal is for how long the peer has had no answer to a renewal.
	SinceRenewal time.Duration
}

// MustStop tells whether the node has to stop its writers now: unmount, drop the
// action that it is about to carry out, and close the epochs it has opened, mounted
// or not, so that a mount that hangs cannot succeed after its time. The node asks
// it before every renewal, too: a machine that slept through its time must stop
// before it renews, because it may have been fenced meanwhile. A node is exempt
// only while a majority of the storage nodes, itself included, are without the API:
// then the API is away, not the node.
func MustStop(c *Contact) (bool, Why) {
	if c.SinceRenewal < SelfFenceAfter {
		return false, Why{Reason: LeaseHeld}
	}
	if alike, away := APIIsAway(c); away {
		return false, Why{Reason: APIAway, Count: alike}
	}
	return true, Why{Reason: CutOff}
}

// APIIsAway tells whether a majority of each set, the node itself included, is without the API.
// alike is the least number of such nodes that a set has. While that is so, no controller can have
// a majority that has been steady since, so the node is as safe as if it had renewed now.
func APIIsAway(c *Contact) (alike int, away bool) {
	for i, set := range c.Sets {
		n := 1
		for _, name := range set {
			if slices.ContainsFunc(c.Peers, func(p PeerContact) bool { return p.Node == name && p.SinceRenewal >= AwayAfter }) {
				n++
			}
		}
		if 2*n <= len(set) {
			return n, false
		}
		if i == 0 || n < alike {
			alike = n
		}
	}
	return alike, len(c.Sets) > 0
}

// Leases is the controller's observation of the storage nodes' leases.
type Leases struct {
	// Suspect is the node in question and Boot the boot id in its lapsed lease.
	// The node may have booted again since.
	Suspect, Boot string
	// Watchdog: the node's contract covers its agent's own death.
	Watchdog bool
	// KubeletAlive: the kubelet's own lease is renewed, so the machine runs.
	KubeletAlive bool
	// Lapsed is how long the suspect's lease has not been renewed, counted from
	// the later of its last renewal and the controller's own first contact with
	// the API: a controller that was away has seen nothing.
	Lapsed time.Duration
	// Named is the set that the lapsed lease names, and Counted the set of the suspect and the
	// present storage nodes. Nodes is how many Counted has, Steady how many of them renewed their
	// lease throughout the last SelfFenceAfter and SelfFenceMargin, and said in each renewal that
	// they had an answer to one within AwayAfter. A renewal can be stored although its answer
	// is lost: such a node believes that the API is away, and exempts the suspect. A node that was
	// silent before that time may have exempted the suspect then. The suspect has stopped since,
	// when its exemption ended.
	Named, Counted Members
	Nodes, Steady  int
}

// ContractProves tells whether the self-fence contract has run out, and gives the
// proof. The majority required here and the one that exempts a node share a member,
// and that member cannot both have renewed and not have renewed. Of two nodes one is no majority,
// so the contract proves nothing in a cluster of two.
func ContractProves(l *Leases) (Proof, bool) {
	if l.Named == "" || l.Named != l.Counted {
		return Proof{}, false
	}
	if !l.Watchdog || l.KubeletAlive || l.Lapsed < SelfFenceAfter+SelfFenceMargin || 2*l.Steady <= l.Nodes {
		return Proof{}, false
	}
	return Proof{Kind: SelfFenced, Node: l.Suspect, Boot: l.Boot}, true
}
