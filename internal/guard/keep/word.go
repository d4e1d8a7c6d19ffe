package keep

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/ownership"
)

// The reasons of refusals that are not package guard's.
const (
	// StillOpen: an epoch is open that the word would end.
	StillOpen ownership.Reason = "StillOpen"
	// Looking: another question of that kind has no answer yet.
	Looking ownership.Reason = "Looking"
	// WatchdogPromised: the lease still says that there is a watchdog, and there is none.
	WatchdogPromised ownership.Reason = "WatchdogPromised"
)

// Heard is told of each request in which control group the agent's container is. To learn it from Open and Closed alone
// is too late: an agent that has replaced another one has devices open long before either, and each of them may be
// refused. For a process outside of all pods agent is empty. The guard stops no such process, and goes on sparing the
// agent that it knows.
func (k *Keeper) Heard(agent string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if agent == "" || agent == k.state.Agent {
		return
	}
	k.state.Agent = agent
	if err := k.c.Store.Save(k.state); err != nil {
		k.c.Log.Error(err, "a guard that follows this one does not know the agent's pod")
	}
}

// Open registers an epoch before the agent makes the volume writable. It returns a warning if no
// other node can rely on this one's end. The agent must not open the epoch after an error.
func (k *Keeper) Open(e guard.Epoch) (warning string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.facts()
	if refusal, reason := guard.Admit(f, e); refusal != "" {
		return "", &RefusedError{Reason: reason, Message: refusal}
	}
	if err := k.c.Watchdog.Arm(guard.WatchdogAfter, guard.WatchdogSoon); err != nil {
		warning = fmt.Sprintf("the guard's own death is not covered, so no other node takes the volume over without a power record or a taint: %v", err)
		k.c.Log.Error(err, "an epoch begins without a watchdog", "volume", e.Volume)
	}
	if k.promised && !k.c.Watchdog.Promises() {
		return "", &RefusedError{Reason: WatchdogPromised, Message: "the node's lease still says that a watchdog resets this machine, and none does; wait for the next renewal. " + warning}
	}
	next := k.state
	next.Open = slices.DeleteFunc(slices.Clone(next.Open), func(o guard.Epoch) bool { return o.Volume == e.Volume })
	next.Open = append(next.Open, e)
	slices.SortFunc(next.Open, guard.Compare)
	if err := k.save(next); err != nil {
		return "", err
	}
	// The next renewal is due sooner, and says that there is a watchdog.
	k.poke()
	return warning, nil
}

// Close ends an epoch that the agent has closed and unmounted. The kernel must agree that nothing
// holds the volume.
func (k *Keeper) Close(e guard.Epoch) error {
	open, err := k.begin(e)
	if err != nil || open.Volume == "" {
		return err
	}
	held := k.c.Writers.Free(open.Holding) // may take for ever, so without the lock
	if held == nil {
		err = k.c.Writers.Allow(open.Holding)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.proof(e.Volume).busy = false
	switch {
	case held != nil:
		return &RefusedError{Reason: ownership.StillHeld, Message: held.Error()}
	case err != nil:
		return err
	}
	next := k.state
	next.Open = slices.DeleteFunc(slices.Clone(next.Open), func(o guard.Epoch) bool { return o == open })
	if err := k.save(next); err != nil {
		return err
	}
	delete(k.proofs, e.Volume)
	k.poke()
	return nil
}

// begin returns the epoch as it is open, or none if the volume has no epoch open. It keeps the guard from
// stopping the volume's writers until the caller has its answer.
func (k *Keeper) begin(e guard.Epoch) (guard.Epoch, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := slices.IndexFunc(k.state.Open, func(o guard.Epoch) bool { return o.Volume == e.Volume })
	if at < 0 {
		return guard.Epoch{}, nil
	}
	if open := k.state.Open[at]; open.Epoch != e.Epoch {
		return guard.Epoch{}, &RefusedError{Reason: StillOpen, Message: fmt.Sprintf("epoch %v of the volume is open", open.Epoch)}
	}
	p := k.proof(e.Volume)
	if p.busy {
		return guard.Epoch{}, &RefusedError{Reason: Looking, Message: "the guard is looking for what holds the volume; ask again"}
	}
	p.busy, p.at = true, k.c.Now()
	return k.state.Open[at], nil
}

// Closed is the agent's word that it has closed every epoch that this node has ever opened, that
// nothing it began will open one, and that the guard knows of none: the guard is fenced no longer.
func (k *Keeper) Closed() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.state.Fenced {
		return nil
	}
	if len(k.state.Open) > 0 {
		return &RefusedError{Reason: StillOpen, Message: "epochs are open of " + volumes(k.state.Open) + ": close them first"}
	}
	next := k.state
	next.Fenced, next.Cleared = false, k.c.Now()
	if err := k.save(next); err != nil {
		return err
	}
	k.tried = 0
	k.poke()
	return nil
}

func volumes(epochs []guard.Epoch) string {
	var out []string
	for _, e := range epochs {
		out = append(out, e.Volume)
	}
	return strings.Join(out, ", ")
}

// Status is how the guard stands.
type Status struct {
	// Fenced: no epoch may begin until the agent says that it has closed every epoch.
	Fenced bool `json:"fenced"`
	// Message says what the guard does, and why.
	Message string `json:"message"`
	// SinceRenewal is the time since the node's lease was renewed, and Watchdog whether the
	// machine is reset when the guard dies.
	SinceRenewal time.Duration `json:"sinceRenewal"`
	Watchdog     bool          `json:"watchdog"`
	Open         []guard.Epoch `json:"open"`
}

// Status returns how the guard stands.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Status{
		Fenced: k.state.Fenced, Message: k.last.Message, SinceRenewal: k.c.Now() - k.state.Renewed,
		Watchdog: k.c.Watchdog.Promises(), Open: slices.Clone(k.state.Open),
	}
}

// Agent returns the control group of the agent's container, empty if it has not spoken yet.
func (k *Keeper) Agent() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state.Agent
}
