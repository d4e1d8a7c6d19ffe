package attach

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// The verbs of a controller that carries out orders at a cloud.
const (
	// Begin begins an operation of the machine.
	Begin decide.Verb = "Begin"
	// Follow asks the cloud how far the operation is.
	Follow decide.Verb = "Follow"
	// List asks the cloud what is attached to the machine.
	List decide.Verb = "List"
	// Answer answers an order.
	Answer decide.Verb = "Answer"
	// Pause does nothing until a time.
	Pause decide.Verb = "Pause"
)

const (
	// follows is how often an operation is asked for. An attach takes a cloud some ten seconds.
	follows = 2 * time.Second
	// relists is the pause before the next listing, when one still has a disk that was detached. After
	// listings of them in a row the disk is detached anew.
	relists  = 2 * time.Second
	listings = 8
	// tries is how often an attach that failed is begun, before the order is refused: a cloud may call an
	// operation a failure that has had its effect, and then a second one finds the disk attached.
	tries = 2
	// backOff is the pause after an answer that was lost, or a cloud that wants to be left alone and does not say
	// for how long. It doubles up to mostBackOff.
	backOff     = time.Second
	mostBackOff = time.Minute
)

// Ordered is an order about one disk.
type Ordered struct {
	// Disk is its handle.
	Disk string
	ownership.Order
}

// Machine is what a controller knows of the machine of a node at a cloud that attaches disks.
type Machine struct {
	Now time.Time
	// Orders of the node, in order of their disks.
	Orders []Ordered
	Memory
}

// Memory is what a controller remembers of a machine. All of it may be lost: every operation is begun again,
// and the cloud finds that it has been carried out already.
type Memory struct {
	// Operation that this controller has begun, and not seen to end; empty if there is none. Follow is when it
	// is asked for next, and Covers are the orders that it carries out, by disk.
	Operation string
	Follow    time.Time
	Covers    map[string]string
	// Ends are what operations have come to, by the id of an order.
	Ends map[string]End
	// Answered are the ids of orders that have their answer, of which the facts may not know yet.
	Answered map[string]bool
	// NotBefore is until when the cloud is left alone, and Failures how often in a row that was so.
	NotBefore time.Time
	Failures  int
	// Relist is when the next listing is asked for, if one is needed.
	Relist time.Time
	// Singly: the cloud has refused a batch as a whole, so orders are carried out one at a time.
	Singly bool
}

// End is what the operations for an order have come to.
type End struct {
	// Tries are the operations that ended.
	Tries int
	// Err is what the last one said, nil if it has carried out the order. Said counts those that have, in a row.
	Err  error
	Said int
	// Listed: a listing was asked for before the first operation that detaches the disk. Seen: a listing from
	// after the order has had the disk, so that those which follow know of the attachment.
	Listed, Seen bool
	// Absent: the disk is detached, by the word of operations and of a listing that was asked for afterwards.
	// Listings counts those that still have it.
	Absent   bool
	Listings int
}

// Step is what a controller does next about a machine.
type Step struct {
	decide.Decision
	// Orders of an operation, or the one that is answered.
	Orders []Ordered
	// State is the answer, and Done says that the order ends with it.
	State ownership.OrderState
	Done  bool
	// Until is the end of a pause; zero if nothing is left to do.
	Until time.Time
}

// Next decides. Nothing is believed that a listing says alone: a disk is detached if an operation has said so,
// and a listing from after it agrees. A listing that does not have the disk may be from before the attach. So one
// of the listings must have had the disk, or a second operation must find that nothing is left to do.
func (m *Machine) Next() Step { return steps.Decide(m) }

var steps = decide.Chain[*Machine, Step]{
	{When: func(m *Machine) bool { return m.answered() >= 0 }, Then: (*Machine).answer},
	{When: func(m *Machine) bool { return len(m.open()) == 0 && m.Operation == "" }, Then: func(*Machine) Step {
		return Step{Decision: decide.Decision{Verb: Pause, Reason: "NothingOrdered", Message: "all orders of the node are carried out"}}
	}},
	{When: func(m *Machine) bool { return m.NotBefore.After(m.Now) }, Then: func(m *Machine) Step {
		return m.pause("CloudBusy", "the cloud is left alone for a while", m.NotBefore)
	}},
	{When: func(m *Machine) bool { return m.Operation != "" && m.Follow.After(m.Now) }, Then: func(m *Machine) Step {
		return m.pause("OperationRuns", "an operation of the machine is under way", m.Follow)
	}},
	{When: func(m *Machine) bool { return m.Operation != "" }, Then: func(*Machine) Step {
		return Step{Decision: decide.Decision{Verb: Follow, Reason: "OperationRuns", Message: "an operation of the machine is under way"}}
	}},
	{When: (*Machine).unlisted, Then: func(*Machine) Step {
		return Step{Decision: decide.Decision{Verb: List, Reason: "DetachOrdered", Message: "a listing from before a detach may know of the attachment"}}
	}},
	{When: func(m *Machine) bool { return m.unproven() && !m.Relist.After(m.Now) }, Then: func(*Machine) Step {
		return Step{Decision: decide.Decision{Verb: List, Reason: "DetachUnproven", Message: "an operation has detached a disk, and a listing must agree"}}
	}},
	{When: func(m *Machine) bool { return len(m.batch()) > 0 }, Then: func(m *Machine) Step {
		b := m.batch()
		return Step{Decision: decide.Decision{Verb: Begin, Reason: "Ordered", Message: fmt.Sprintf("the node has ordered changes of %d disks", len(b))}, Orders: b}
	}},
	{Then: func(m *Machine) Step {
		return m.pause("DetachUnproven", "a listing still has a disk that was detached", m.Relist)
	}},
}

func (*Machine) pause(reason, message string, until time.Time) Step {
	return Step{Decision: decide.Decision{Verb: Pause, Reason: reason, Message: message}, Until: until}
}

// open are the orders that are not answered. One that was answered and is no more so (the disk was detached by
// another) is the node's to notice: it has no device.
func (m *Machine) open() (open []Ordered) {
	for _, o := range m.Orders {
		if isOpen(o) && !m.Answered[o.ID] {
			open = append(open, o)
		}
	}
	return open
}

func isOpen(o Ordered) bool { return o.State == ownership.Placed || o.Wish == ownership.ToDetach }

// answered is the index of an open order that has its answer, -1 if none has.
func (m *Machine) answered() int {
	return slices.IndexFunc(m.Orders, func(o Ordered) bool {
		end := m.Ends[o.ID]
		switch {
		case end.Tries == 0, !isOpen(o), m.Answered[o.ID]:
			return false
		case o.Wish == ownership.ToAttach:
			return end.Err == nil || end.Tries >= tries || Final(end.Err)
		}
		return end.Absent
	})
}

// Final says whether a cloud would say the same again, and has begun nothing if it has said so of a whole operation.
func Final(err error) bool {
	return slices.ContainsFunc([]error{provision.ErrConflict, provision.ErrNotFound, provision.ErrNoSpace, provision.ErrInvalid, provision.ErrUnsupported},
		func(class error) bool { return errors.Is(err, class) })
}

func (m *Machine) answer() Step {
	o := m.Orders[m.answered()]
	step := Step{Decision: decide.Decision{Verb: Answer}, Orders: []Ordered{o}}
	switch end := m.Ends[o.ID]; {
	case o.Wish == ownership.ToDetach:
		step.Done, step.Reason, step.Message = true, "Detached", "the disk is detached"
	case end.Err == nil:
		step.State, step.Reason, step.Message = ownership.Carried, "Attached", "the disk is attached"
	default:
		step.State, step.Reason, step.Message = ownership.Refused, "Refused", end.Err.Error()
	}
	return step
}

// batch are the orders for which an operation is to begin: all that are open at once, as long as the cloud
// takes them so, else the one that was tried least.
func (m *Machine) batch() (batch []Ordered) {
	for _, o := range m.open() {
		if !m.waits(o) {
			batch = append(batch, o)
		}
	}
	if m.Singly && len(batch) > 1 {
		return []Ordered{slices.MinFunc(batch, func(x, y Ordered) int { return cmp.Compare(m.Ends[x.ID].Tries, m.Ends[y.ID].Tries) })}
	}
	return batch
}

// waits says whether a disk is detached by the word of an operation, and a listing is to agree. An attach has its
// answer by then.
func (m *Machine) waits(o Ordered) bool {
	end := m.Ends[o.ID]
	return end.Said > 0 && end.Listings < listings
}

func (m *Machine) unlisted() bool {
	return slices.ContainsFunc(m.open(), func(o Ordered) bool { return o.Wish == ownership.ToDetach && !m.Ends[o.ID].Listed })
}

func (m *Machine) unproven() bool { return slices.ContainsFunc(m.open(), m.waits) }

// Began notes an operation that the cloud has begun.
func (m *Machine) Began(operation string, batch []Ordered) {
	m.Operation, m.Follow = operation, m.Now.Add(follows)
	m.Covers = map[string]string{}
	for _, o := range batch {
		m.Covers[o.Disk] = o.ID
	}
}

// Later notes that the cloud has begun nothing, or that its answer was lost: then the next operation finds out.
func (m *Machine) Later(after time.Duration) {
	m.NotBefore = m.Now.Add(max(after, min(mostBackOff, backOff<<min(m.Failures, 8))))
	m.Failures++
}

// Refuses notes that the cloud has refused a batch as a whole. One disk of it is the reason.
func (m *Machine) Refuses(batch []Ordered, err error) {
	if len(batch) > 1 {
		m.Singly = true
		return
	}
	m.end(batch[0].ID, batch[0].Wish, err)
	m.Later(0)
}

// Runs notes that an operation is still under way.
func (m *Machine) Runs() { m.Follow = m.Now.Add(follows) }

// Ended notes the end of the operation. failed are the disks for which it did not do what was ordered.
func (m *Machine) Ended(failed map[string]error) {
	for disk, id := range m.Covers {
		for _, o := range m.Orders {
			if o.ID == id {
				m.end(id, o.Wish, failed[disk])
			}
		}
	}
	m.Operation, m.Covers = "", nil
	if len(failed) > 0 {
		m.Later(0)
		return
	}
	m.Failures = 0
}

// Forgotten notes that the cloud does not know the operation any more. It has ended, and the next one finds out how.
func (m *Machine) Forgotten() { m.Operation, m.Covers = "", nil }

// end notes an end. A disk or a machine that does not exist is not attached.
func (m *Machine) end(id string, wish ownership.Wish, err error) {
	if wish == ownership.ToDetach && errors.Is(err, provision.ErrNotFound) {
		err = nil
	}
	old := m.Ends[id]
	next := End{Tries: old.Tries + 1, Err: err, Listed: old.Listed, Seen: old.Seen}
	if err == nil {
		next.Said = old.Said + 1
	}
	m.keep(id, next)
}

func (m *Machine) keep(id string, end End) {
	if m.Ends == nil {
		m.Ends = map[string]End{}
	}
	m.Ends[id] = end
}

// Lists notes a listing, which was asked for when no operation was under way.
func (m *Machine) Lists(attached []string) {
	for _, o := range m.open() {
		end, has := m.Ends[o.ID], slices.Contains(attached, o.Disk)
		end.Listed, end.Seen = true, end.Seen || has
		switch {
		case end.Said == 0:
		case has:
			end.Listings++
			m.Relist = m.Now.Add(relists)
		case end.Seen, end.Said > 1:
			end.Absent = true
		default:
			end.Listings = listings // it may not know of the attachment yet: the disk is detached once more
		}
		m.keep(o.ID, end)
	}
}

// Unlisted notes that the cloud did not list. Orders do not wait for a listing that only spares an operation.
func (m *Machine) Unlisted() {
	for _, o := range m.open() {
		end := m.Ends[o.ID]
		end.Listed = true
		m.keep(o.ID, end)
	}
}

// Answers notes that an order has its answer.
func (m *Machine) Answers(id string) {
	if m.Answered == nil {
		m.Answered = map[string]bool{}
	}
	m.Answered[id] = true
}

// Forget drops what is about orders that are no more, and about those that are answered.
func (m *Machine) Forget() {
	maps.DeleteFunc(m.Ends, func(id string, _ End) bool {
		return !slices.ContainsFunc(m.open(), func(o Ordered) bool { return o.ID == id })
	})
	maps.DeleteFunc(m.Answered, func(id string, _ bool) bool {
		return !slices.ContainsFunc(m.Orders, func(o Ordered) bool { return o.ID == id && isOpen(o) })
	})
	if len(m.open()) == 0 {
		m.Singly = false
	}
}
