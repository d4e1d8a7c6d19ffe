package guard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/ownership"
)

const (
	// RenewOpen is how often the lease is renewed while an epoch is open, RenewIdle otherwise. Both are
	// so often that a node which misses no renewal is steady (package sight), and RenewOpen so often
	// that all nodes agree in time that the API has gone away: see ownership.AwayAfter.
	RenewOpen = 4 * time.Second
	RenewIdle = 8 * time.Second
	// WatchdogAfter is how long after its last feeding the watchdog resets the machine, and
	// WatchdogSoon how long when nothing has shown for WatchdogAfter that the node may write. The
	// kernel feeds a watchdog once more when the process dies that has it open, so the reset comes at
	// most twice this time after the guard's last feeding. Fed before 10 s have passed, the machine is
	// reset before 10+2*10 s have; fed before ownership.SelfFenceAfter, before 20+2*5 s: within the
	// time that controllers wait, whenever the guard dies.
	WatchdogAfter = ownership.SelfFenceMargin
	WatchdogSoon  = ownership.SelfFenceMargin / 2
	// Fresh is how old a decision may be when it is carried out.
	Fresh = time.Second
	// stopWithin is how long stopping writers may take before it is said to have failed. The
	// watchdog does not wait for it: it is not fed from the moment when writers must stop.
	stopWithin = 5 * time.Second
)

// The verbs of the guard's decisions.
const (
	// Hold: nothing but the watchdog.
	Hold decide.Verb = "Hold"
	// Renew the lease.
	Renew decide.Verb = "Renew"
	// Fence: from now on renew nothing and let no epoch begin, until the agent says that it has
	// closed every epoch. Nothing is open that would have to be stopped.
	Fence decide.Verb = "Fence"
	// Stop the writers of Volumes. It fences the guard, too.
	Stop decide.Verb = "Stop"
	// Reset is a Stop that did not succeed in its time, of writers whose late writes no disk keeps out: the
	// machine is left to the watchdog.
	// Writers are stopped as before, and if that succeeds after all, the watchdog is fed again.
	Reset decide.Verb = "Reset"
	// End the process: nothing is open.
	End decide.Verb = "End"
)

// The reasons of the guard's own. ownership has those of MustStop.
const (
	// Due: it is time to renew.
	Due ownership.Reason = "Due"
	// Fenced: the agent must first say that it has closed every epoch.
	Fenced ownership.Reason = "Fenced"
	// StillRunning: the guard is fenced, and something may still write.
	StillRunning ownership.Reason = "StillRunning"
	// NotStopped: writers could not be stopped in time.
	NotStopped ownership.Reason = "NotStopped"
	// NotStoppedReserved: the same, and their disks keep their late writes out.
	NotStoppedReserved ownership.Reason = "NotStoppedReserved"
	// NotStoppedNoWatchdog: the same, their disks do not, and nothing resets the machine.
	NotStoppedNoWatchdog ownership.Reason = "NotStoppedNoWatchdog"
	// Asked: the process was asked to end.
	Asked ownership.Reason = "Asked"
)

// Answer is what the guard does next, and what it does with the watchdog.
type Answer struct {
	decide.Decision
	// Volumes whose writers are stopped.
	Volumes []Epoch
	// Feed the watchdog: the promise holds until it would reset the machine, or the guard has kept it.
	// Disarm it: nothing is open. Within is how long after a feeding it resets the machine.
	Feed, Disarm bool
	Within       time.Duration
	// Ask the peers whether they are without the API, too.
	Ask bool
}

func to(verb decide.Verb, reason ownership.Reason, message string) Answer {
	return Answer{Decision: decide.Decision{Verb: verb, Reason: string(reason), Message: message}}
}

// Decide returns what to do. The first rule that matches decides.
func Decide(f *Facts) Answer {
	must, why := ownership.MustStop(f.Contact())
	d := next(f, must, why)
	unsafe := f.unsafe()
	goesOn := (d.Verb == Hold || d.Verb == Renew) && unsafe < ownership.SelfFenceAfter-Fresh
	d.Feed = f.Armed && (goesOn || len(f.unreserved()) == 0)
	d.Disarm = f.Armed && f.Stoppable && len(f.Open) == 0
	d.Within = WatchdogSoon
	if unsafe < WatchdogAfter-Fresh {
		d.Within = WatchdogAfter
	}
	d.Ask = len(f.Running) > 0 && !f.Fenced && !must && !f.Asking && unsafe >= ownership.AwayAfter
	return d
}

func next(f *Facts, must bool, why ownership.Why) Answer {
	switch {
	case len(f.Running) > 0 && (must || f.Fenced):
		return stop(f, must, why)
	case f.Ending && len(f.Open) == 0 && (!f.Armed || f.Stoppable):
		return to(End, Asked, "asked to end, and no epoch is open")
	case f.Fenced:
		return to(Hold, Fenced, "waiting for the agent's word that it has closed every epoch of this node")
	case must:
		return to(Fence, why.Reason, why.Message())
	case !f.Renewing && (f.Tried == 0 || f.Now-f.Tried >= f.interval()):
		return to(Renew, Due, "renewing the lease")
	case f.Exempted > f.Renewed:
		why = ownership.Why{Reason: ownership.APIAway, Count: f.Alike}
		return to(Hold, why.Reason, why.Message())
	default:
		return to(Hold, why.Reason, why.Message())
	}
}

func (f *Facts) interval() time.Duration {
	if len(f.Open) > 0 {
		return RenewOpen
	}
	return RenewIdle
}

// stop stops the writers. It is a failure if they run on after their time.
func stop(f *Facts, must bool, why ownership.Why) Answer {
	d := to(Stop, why.Reason, why.Message())
	d.Volumes = f.Running
	if !must {
		d.Reason, d.Message = string(StillRunning), "the guard is fenced, and something may still write; stopping it"
	}
	if !f.Fenced || f.Now-f.FencedAt < stopWithin {
		return d
	}
	left := f.unreserved()
	if len(left) == 0 {
		d.Reason = string(NotStoppedReserved)
		d.Message = fmt.Sprintf("the writers of %s could not be stopped yet, and the guard goes on trying; their disks take no write of theirs once another node owns the volumes", names(f.Running))
		return d
	}
	d.Verb, d.Reason = Reset, string(NotStopped)
	d.Message = fmt.Sprintf("the writers of %s could not be stopped; the watchdog resets this machine", names(left))
	if !f.Armed {
		d.Reason = string(NotStoppedNoWatchdog)
		d.Message = fmt.Sprintf("the writers of %s could not be stopped, and this machine has no watchdog: power it off", names(left))
	}
	return d
}

// unreserved are the running epochs whose late writes nothing but the end of their writers keeps out. Only
// for them the machine is reset: a disk that is cut off hangs its writers for minutes, and a reset for
// their sake would take the machine's other pods with them.
func (f *Facts) unreserved() []Epoch {
	return slices.DeleteFunc(slices.Clone(f.Running), func(e Epoch) bool { return e.Reserved })
}

func names(epochs []Epoch) string {
	out := make([]string, 0, len(epochs))
	for _, e := range epochs {
		out = append(out, e.Volume)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// Admit returns why an epoch may not begin now; the refusal is empty if it may. It may begin only under
// a lease that is held: else a proof about this node's silence would be a proof about the new epoch.
func Admit(f *Facts, e Epoch) (refusal string, reason ownership.Reason) {
	held := f.Renewed > 0 && f.Renewed >= f.Cleared && f.Now-f.Renewed < ownership.SelfFenceAfter
	at := slices.IndexFunc(f.Open, func(o Epoch) bool { return o.Volume == e.Volume })
	switch {
	case f.Fenced:
		return "the guard is fenced: close every epoch of this node first, and say so", Fenced
	case f.Ending:
		return "the guard was asked to end; a new one takes its place", Asked
	case !held:
		return "the node's lease is not renewed; wait until it is", ownership.LeaseLapsed
	case at >= 0 && f.Open[at].Epoch != e.Epoch:
		return fmt.Sprintf("epoch %v of the volume is open; close it first", f.Open[at].Epoch), ownership.Superseded
	case at >= 0 && f.Open[at].Holding != e.Holding:
		return "this epoch is open with another device; close it first", ownership.Superseded
	}
	return "", ownership.LeaseHeld
}
