package guard

import (
	"cmp"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// Epoch is an epoch of a volume that this node has open, or has not proved to have ended.
type Epoch struct {
	Volume  string        `json:"volume"`
	Epoch   lineage.Epoch `json:"epoch"`
	Holding Holding       `json:"holding"`
	// Reserved: the volume's disk takes no write of this epoch once another node has its reservation
	// (ownership.Traits.Reserves). No other node relies on the end of such writers.
	Reserved bool `json:"reserved,omitempty"`
}

// Compare orders epochs by volume.
func Compare(a, b Epoch) int { return cmp.Compare(a.Volume, b.Volume) }

// Holding says how the kernel names a volume. It names what holds the volume, too: a process cannot
// choose the number of a device that it has open or mounted.
type Holding struct {
	// Device is the number, "major:minor", of the volume's mounts in mount tables. For a volume
	// with a block device it is the device's own number.
	Device string `json:"device"`
	// Root is the directory of a tree inside its filesystem, as mount tables show it; empty for
	// a volume that is a filesystem or a device of its own.
	Root string `json:"root,omitempty"`
	// Files is the device number that stat shows for the files of a tree; empty means Device.
	Files string `json:"files,omitempty"`
	// Block: the volume has a block device.
	Block bool `json:"block,omitempty"`
}

// Renewal is what a renewal of the lease says of its node.
type Renewal struct {
	// Sent is when it was sent, on the boot clock: after the renewal that it replaces was stored.
	Sent time.Duration
	// Silent is for how long the node had no answer to any renewal then. The API server may store
	// renewals whose answers are lost. The agent's word does not end a silence.
	Silent time.Duration
	// Watchdog: the machine is reset when the guard dies.
	Watchdog bool
}

// Facts is all that a decision rests on. Times are on the boot clock, which counts while the
// machine sleeps.
type Facts struct {
	Now time.Duration
	// Renewed is when the last renewal that succeeded was sent: the server may have recorded it
	// at any time after that. Zero means that this boot has renewed nothing.
	Renewed time.Duration
	// Cleared is when the agent last said that it has closed every epoch. From then on the node
	// has promised nothing, and the contract's time counts anew.
	Cleared time.Duration
	// Exempted is when those peers were asked whose answers last showed that the API is away: see
	// ownership.APIIsAway. Alike is how many nodes were without it, this one included.
	Exempted time.Duration
	Alike    int
	// Asking: answers of peers are still awaited.
	Asking bool
	// Tried is when the last attempt to renew was sent, zero if there was none.
	Tried time.Duration
	// Renewing: the answer to an attempt is still awaited.
	Renewing bool
	// Sets are those over which this node counts its majority: see ownership.Contact.
	Sets [][]string
	// Fenced: the agent has not said yet that it has closed every epoch. FencedAt is since when.
	Fenced   bool
	FencedAt time.Duration
	// Open are the epochs that the agent has registered and not closed. Running are those of
	// them that something may still write into: all, except those whose volumes were proved to
	// be held by nothing since the guard was fenced.
	Open, Running []Epoch
	// Armed: the watchdog resets the machine if it is not fed. Stoppable: its device lets go of
	// the machine when asked to.
	Armed, Stoppable bool
	// Ending: the process was asked to end.
	Ending bool
}

// Contact is ownership's view of these facts.
func (f *Facts) Contact() *ownership.Contact {
	return &ownership.Contact{SinceRenewal: f.Now - max(f.Renewed, f.Cleared, f.Exempted), Sets: f.Sets}
}

// unsafe is for how long nothing has shown that this node may write.
func (f *Facts) unsafe() time.Duration {
	c := f.Contact()
	if _, away := ownership.APIIsAway(c); away { // without a peer's word: a cluster of one node
		return 0
	}
	return c.SinceRenewal
}
