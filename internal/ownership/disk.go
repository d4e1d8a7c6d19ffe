package ownership

import "time"

// Disk is a node's view of a shared disk.
type Disk struct {
	Link Link
	// Registered is the key under which the target knows this session of the node, zero if it
	// does not. A session that the node had before, registered under the same key, does not count.
	Registered RawKey
	// Holder of the reservation, zero if there is none. Holding says that this session holds it.
	// After a new login the holder may be the node's own key, and the session holds nothing until it
	// registers: by SPC-4 the target refuses its writes. LIO takes them all the same (docs/iscsi.md).
	// That lets no other node write, and no rule counts on the refusal.
	Holder  RawKey
	Holding bool
	// Registrants: the reservation lets every registered session write (SPC-4: Write Exclusive, Registrants
	// Only), and not its holder alone.
	Registrants bool
	// Keys are all registrations that the target knows, those of this session and of sessions that ended
	// included.
	Keys []RawKey
}

// holds tells whether the target accepts this session's writes under the key.
func (d *Disk) holds(k Key) bool {
	return d.Link == Attached && d.Holding && d.Holder == k.Raw() && d.Registered == k.Raw()
}

// Link is the word of the disk's provisioner about one attachment.
type Link int

const (
	// Detached: there is no attachment, and none is under way. Only this word ends an entry.
	Detached Link = iota
	// Attaching: an attach is under way, or may still succeed after its caller died.
	Attaching
	// Attached: the device is there.
	Attached
	// AttachFailed: the provisioner refused, or gave up. A part of the attachment may be left.
	AttachFailed
)

func (l Link) String() string {
	return [...]string{"Detached", "Attaching", "Attached", "AttachFailed"}[l]
}

// Sharing says how a shared disk may be used. Class and provisioner decide it.
type Sharing struct {
	// MaxShares is how many nodes the disk can be attached to at once. An attachment takes its
	// share until it is gone.
	MaxShares int
	// Yields: a standby gives its slot on a node to a primary of another volume that finds none.
	Yields bool
	// Persistent: the target keeps reservations through its own loss of power. If it does not,
	// a reservation that was taken away may be free again, and shutting a writer out there proves
	// nothing.
	Persistent bool
	// ManyWriters: several nodes write at once, each in an epoch of its own. The programs that use the disk
	// agree on who writes where.
	ManyWriters bool
}

// An attachment that fails is tried again after a pause, which doubles from retryFirst to
// retryMost. Until it has failed triesUntilReplaced times it counts as one that may yet succeed.
const (
	retryFirst         = 5 * time.Second
	retryMost          = time.Minute
	triesUntilReplaced = 2
)

func retryPause(tries int) time.Duration {
	return min(retryMost, retryFirst<<min(tries-1, 8))
}

// failedForGood tells whether the attachment shall be made on another node.
func failedForGood(e *Replica) bool { return e.State == Failed && e.Tries >= triesUntilReplaced }

// attach drives the node's own attachment until the device is there, from any point at which the
// agent, the controller or the target died. A failed one is cleaned up before it is tried again,
// because a part of it may be left.
func attach(f *NodeFacts) (Action, bool) {
	e, _ := f.Record.Replica(f.Me)
	link := f.Disk.Link
	if !f.traits().Attaches || link == Attached || f.Record.Deleting {
		return next()
	}
	why := Why{Reason: BeingAttached, Node: f.Me}
	switch {
	case f.Mounted:
		return next() // the pod keeps a dead mount; only its end helps
	case link == Attaching && !(e.State == Ready && f.Record.executes(f.Me)): // while it says Ready, the controllers ask no other node
		return wait(why)
	case e.State == Failed && link != Detached:
		return Action{Verb: Detach, Why: Why{Reason: AttachmentFailed, Node: f.Me, Count: e.Tries}}, true
	case e.State == Failed && e.RetryAt.After(f.Now) && !e.RetryAt.After(f.Now.Add(retryMost)): // or the clock was wrong
		return wait(Why{Reason: AttachmentFailed, Node: f.Me, Count: e.Tries})
	case link == AttachFailed:
		return record(f.Record.with(func(n *Volume) {
			e := n.entry(f.Me)
			e.State, e.Tries = Failed, e.Tries+1
			e.RetryAt = f.Now.Add(retryPause(e.Tries))
		}), Why{Reason: AttachmentFailed, Node: f.Me, Count: e.Tries + 1})
	case e.State != Reserved && e.State != Syncing: // no longer ready
		return record(f.Record.with(func(n *Volume) { n.entry(f.Me).State = Syncing }), why)
	}
	return Action{Verb: Attach, Why: why}, true
}

// regain takes the reservation back for a mounted node whose session ended, if the disk still holds
// the node's own key: no node has taken the reservation, so no other one has written. It needs no
// record, because the disk decides. Where the target forgets reservations, a free one may be taken
// back, too, but only by the epoch's owner in the record: a controller cannot replace that owner without its
// help, or while its machine runs. That owner also takes it from the key of an older epoch, which a target
// may bring back after its own loss of power (docs/iscsi.md).
func regain(f *NodeFacts) (Action, bool) {
	mine := Key{Node: f.Me, Epoch: f.Copy.Opened}
	if !f.Mounted || f.Disk.Link != Attached || f.Copy.GaveUp(f.Copy.Opened) || f.Disk.holds(mine) {
		return next()
	}
	if f.Disk.Registrants || f.Record != nil && f.Record.Sharing.ManyWriters {
		return next() // see join
	}
	why := Why{Reason: SessionRenewed, Node: f.Me, Epoch: mine.Epoch}
	owns := f.Record != nil && f.Record.ownedBy(f.Me) && f.Record.Epoch == mine.Epoch
	switch {
	case f.Disk.Holder == mine.Raw(), owns && f.Disk.Holder == 0 && !f.Record.Sharing.Persistent:
	case owns && f.Disk.Holder != 0 && outdated(f, mine.Epoch.Number):
		why.Reason = HolderOutdated
	default:
		return next()
	}
	return seize(f, mine, why)
}

// outdated tells whether the disk is reserved for an epoch of this volume that is older, or as it was before the volume.
func outdated(f *NodeFacts, number uint64) bool {
	k, known := readKey(f, f.Disk.Holder)
	return (known || f.Disk.Holder.IsLeftByWipe()) && k.Epoch.Number < number
}

// seize registers this session under the key and then takes the reservation from exactly the key
// that was seen.
func seize(f *NodeFacts, k Key, why Why) (Action, bool) {
	if f.Disk.Registered != k.Raw() {
		return Action{Verb: Register, Key: k, Why: why}, true
	}
	return Action{Verb: Reserve, Expect: f.Disk.Holder, Key: k, Why: why}, true
}
