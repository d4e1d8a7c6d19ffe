package keep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/ownership"
)

const (
	// tick is how often the guard decides.
	tick = time.Second
	// proven is how long the proof that nothing holds a volume lasts: a container that begins
	// anew may hold it again. A proof that takes longer than stale to renew is none.
	proven = 2 * time.Second
	stale  = 5 * time.Second
)

// Lease is the node's lease on the API server.
type Lease interface {
	// Renew renews it once. It asks for what the renewal says when it knows the version that it
	// replaces and the storage nodes that it will name, and sends nothing after an error.
	Renew(ctx context.Context, says func(members []string) (guard.Renewal, error)) error
}

// Peers are the guards of other nodes.
type Peers interface {
	// Contacts returns the answers of those that answer in time.
	Contacts(ctx context.Context, nodes []string) []ownership.PeerContact
}

// Writers is what holds volumes on this machine. Its calls may take for ever.
type Writers interface {
	// Stop stops what holds a volume; nil means that nothing does any more.
	Stop(h guard.Holding) error
	// Free returns nil if nothing holds a volume.
	Free(h guard.Holding) error
	// Allow lets a volume be written again that a Stop has made read-only.
	Allow(h guard.Holding) error
}

// Watchdog resets the machine when it is not fed.
type Watchdog interface {
	// Arm begins with the shorter of two times within which the device must be able to reset.
	Arm(long, short time.Duration) error
	Armed() bool
	Promises() bool
	Stoppable() bool
	// Feed puts the reset off, for this long. Shorten feeds only if the device would reset later.
	Feed(within time.Duration) error
	Shorten(within time.Duration) error
	Disarm() error
}

// Store keeps a State through the death of the guard, but not through that of the machine.
type Store interface {
	// Load returns the zero State if there is none.
	Load() (State, error)
	Save(State) error
}

// State is what a guard must know of the one before it. Times are on the boot clock.
type State struct {
	Boot     string        `json:"boot"`
	Fenced   bool          `json:"fenced"`
	FencedAt time.Duration `json:"fencedAt"`
	Cleared  time.Duration `json:"cleared"`
	Renewed  time.Duration `json:"renewed"`
	// Exempted is when those peers were asked that last were without the API, too. Alike counts them.
	Exempted time.Duration `json:"exempted"`
	Alike    int           `json:"alike"`
	// Sets are those over which the node counts its majority. One is kept before a renewal that
	// names it is sent.
	Sets [][]string `json:"sets"`
	// Open are the epochs that the agent has opened, in order of volume.
	Open []guard.Epoch `json:"open"`
	// Agent is the control group of the agent's container.
	Agent string `json:"agent"`
}

// Config of a Keeper.
type Config struct {
	// Boot is the id of this boot, and Now the time on its clock, which counts while the machine
	// sleeps.
	Boot string
	Now  func() time.Duration
	// Node is the name of this node.
	Node string

	Lease Lease
	// Peers are asked when the API server does not answer; nil asks no node.
	Peers    Peers
	Writers  Writers
	Watchdog Watchdog
	Store    Store
	Clock    clock.WithTicker
	Log      logr.Logger
}

// Keeper keeps the promise of a node.
type Keeper struct {
	c    Config
	wake chan struct{}

	mu    sync.Mutex
	state State
	// tried is when the last attempt to renew was sent. promised says that the lease may say
	// that there is a watchdog.
	tried              time.Duration
	renewing, promised bool
	asking, ending     bool
	proofs             map[string]*proof
	last               guard.Answer
}

// proof is what is known about the end of a volume's writers.
type proof struct {
	// stopped is true of no volume of a guard that is not fenced: Close forgets the proof with the epoch.
	stopped bool
	// busy since at, or else asked at. Only one call at a time is about a volume: a Stop that
	// sleeps must not wake after the next epoch has begun.
	busy bool
	at   time.Duration
}

// New takes over from the guard before. One that finds nothing of this boot is fenced, whatever the kernel says
// that the boot's id is.
func New(c Config) (*Keeper, error) {
	k := &Keeper{c: c, wake: make(chan struct{}, 1), proofs: map[string]*proof{}, promised: true}
	state, err := c.Store.Load()
	if err != nil {
		return nil, err
	}
	if state.Boot == "" || state.Boot != c.Boot {
		state = State{Boot: c.Boot, Fenced: true, FencedAt: c.Now()}
	}
	k.state = state
	// Opening the watchdog feeds it. A guard that comes too late leaves the machine to it.
	if must, _ := ownership.MustStop(k.facts().Contact()); len(state.Open) > 0 && !must {
		if err := c.Watchdog.Arm(guard.WatchdogAfter, guard.WatchdogSoon); err != nil {
			c.Log.Error(err, "the watchdog does not reset this machine if the guard dies, so no other node can rely on that")
		}
	}
	return k, nil
}

// Run keeps the promise until ctx ends, which leaves all as it is, as the death of the process does.
// When asked to end it goes on until no epoch is open.
func (k *Keeper) Run(ctx context.Context, asked <-chan struct{}) error {
	ticker := k.c.Clock.NewTicker(tick)
	defer ticker.Stop()
	for {
		if k.step(ctx) == guard.End {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-asked:
			k.mu.Lock()
			k.ending, asked = true, nil
			k.mu.Unlock()
		case <-k.wake:
		case <-ticker.C():
		}
	}
}

func (k *Keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// step decides once, and begins to carry the decision out.
func (k *Keeper) step(ctx context.Context) decide.Verb {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.facts()
	d := guard.Decide(f)
	k.tell(d)
	switch d.Verb {
	case guard.Renew:
		k.renew(ctx, f.Now)
	case guard.Fence, guard.Stop, guard.Reset:
		k.fence(f.Now)
	}
	if k.state.Fenced {
		k.prove(f.Now)
	}
	if d.Ask && k.c.Peers != nil {
		k.ask(ctx, f)
	}
	if err := k.feed(f, d); err != nil {
		k.c.Log.Error(err, "the watchdog may reset this machine")
	}
	return d.Verb
}

func (k *Keeper) feed(f *guard.Facts, d guard.Answer) (err error) {
	switch {
	case d.Feed && k.c.Now()-f.Now < guard.Fresh: // else what was decided is old: decide anew
		err = k.c.Watchdog.Feed(d.Within)
	case f.Armed:
		err = k.c.Watchdog.Shorten(d.Within)
	}
	if d.Disarm {
		err = errors.Join(err, k.c.Watchdog.Disarm())
	}
	return err
}

func (k *Keeper) facts() *guard.Facts {
	s := &k.state
	f := &guard.Facts{
		Now: k.c.Now(), Renewed: s.Renewed, Cleared: s.Cleared, Tried: k.tried, Renewing: k.renewing,
		Exempted: s.Exempted, Alike: s.Alike, Asking: k.asking, Sets: s.Sets, Fenced: s.Fenced, FencedAt: s.FencedAt, Open: slices.Clone(s.Open),
		Armed: k.c.Watchdog.Armed(), Stoppable: k.c.Watchdog.Stoppable(), Ending: k.ending,
	}
	for _, e := range s.Open {
		p := k.proofs[e.Volume]
		if p == nil || !p.stopped || p.busy && f.Now-p.at >= stale {
			f.Running = append(f.Running, e)
		}
	}
	return f
}

// tell logs a decision whose reason differs from that of the one before. No reason is that of two verbs, one
// after the other.
func (k *Keeper) tell(d guard.Answer) {
	if d.Reason == k.last.Reason || d.Verb == guard.Renew {
		return
	}
	k.last = d
	if d.Verb == guard.Reset {
		k.c.Log.Error(errors.New(d.Message), "writers run on", "reason", d.Reason)
		return
	}
	k.c.Log.Info(d.Message, "decision", d.Verb, "reason", d.Reason)
}

// fence is called with the lock.
func (k *Keeper) fence(now time.Duration) {
	if k.state.Fenced {
		return
	}
	k.state.Fenced, k.state.FencedAt = true, now
	if err := k.c.Store.Save(k.state); err != nil {
		k.c.Log.Error(err, "a guard that follows this one does not know that it is fenced")
	}
}

// proof is called with the lock.
func (k *Keeper) proof(volume string) *proof {
	if k.proofs[volume] == nil {
		k.proofs[volume] = &proof{}
	}
	return k.proofs[volume]
}

// prove begins to stop what holds each open volume, or to prove again that nothing does.
func (k *Keeper) prove(now time.Duration) {
	for _, e := range k.state.Open {
		p := k.proof(e.Volume)
		if p.busy || p.stopped && now-p.at < proven {
			continue
		}
		p.busy, p.at = true, now
		go func() {
			err := k.c.Writers.Stop(e.Holding)
			k.mu.Lock()
			defer k.mu.Unlock()
			p.busy, p.stopped, p.at = false, err == nil, k.c.Now()
			if err != nil { // the next tick tries again
				k.c.Log.Error(err, "the writers of a volume are not stopped yet", "volume", e.Volume)
				return
			}
			k.poke()
		}()
	}
}

// RefusedError is an answer to the agent.
type RefusedError struct {
	Reason  ownership.Reason
	Message string
}

func (r *RefusedError) Error() string { return r.Message }

func (k *Keeper) save(next State) error {
	if err := k.c.Store.Save(next); err != nil {
		return fmt.Errorf("keeping what is open through a restart of the guard: %w", err)
	}
	k.state = next
	return nil
}
