package shell

import (
	"context"
	"errors"
	"sync"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

func pools(f func(v *vault) owner.Pools) seam[owner.Pools] {
	return func(_ *process, right owner.Pools) owner.Pools { return f(right.(*vault)) }
}

var mistakesOfCopies = []mistake{
	{class: nilOnError, name: "state-error", ofCopies: true, thought: "a copy that cannot be read is as good as none",
		copies: pools(func(v *vault) owner.Pools { return unread{v} })},
	{class: answeredEarly, name: "marks-written-behind", ofCopies: true, thought: "the record of a copy is written a moment later, in order",
		copies: pools(func(v *vault) owner.Pools { return &promising{vault: v, waiting: map[string]provision.Mark{}} })},
	{class: staleRead, name: "dirt-not-seen", ofCopies: true, thought: "the newest point is what the head has",
		copies: pools(func(v *vault) owner.Pools { return spotless{v} })},
	{class: answeredEarly, name: "first-stream-alone", ofCopies: true, thought: "a copy that is there is up to date",
		copies: pools(func(v *vault) owner.Pools { return once{v} })},
	{class: outOfOrder, name: "mounted-as-it-is", ofCopies: true, thought: "the head is what the newest point has",
		copies: pools(func(v *vault) owner.Pools { return asItIs{v} })},
	{class: outOfOrder, name: "branches-forgotten", seen: 51, ofCopies: true, thought: "what was rolled back is not needed any more",
		copies: pools(func(v *vault) owner.Pools { return forgetting{v} })},
	{class: staleRead, name: "copy-looked-at-once", ofCopies: true, thought: "a copy changes by what the rules of this node do",
		copies: pools(func(v *vault) owner.Pools { return &recalling{vault: v, seen: map[string]provision.Replica{}} })},
	{class: outOfOrder, name: "guard-not-told-of-copies", ofCopies: true, thought: "the guard will see the mount",
		world: worlds(func(w owner.World) owner.World { return silent{w} })},
	{class: nilOnError, name: "record-of-copies-not-read", ofCopies: true, thought: "a record that cannot be read is as good as none",
		world: worlds(func(w owner.World) owner.World { return blind{w} })},
	{class: conflictLost, name: "record-of-copies-overwritten", ofCopies: true, thought: "the node knows best what it does",
		world: worlds(func(w owner.World) owner.World { return overwriting{w} })},
	{class: lockDropped, name: "copies-without-locks", ofCopies: true, thought: "each step is correct by itself",
		locks: func(*process, staging.Locks) staging.Locks { return unlocked{} }},
}

type unread struct{ *vault }

func (x unread) State(ctx context.Context, id string) (provision.Replica, error) {
	s, err := x.vault.State(ctx, id)
	if err != nil && !errors.Is(err, errDead) {
		return provision.Replica{}, provision.ErrNotFound
	}
	return s, err
}

// promising writes what it was to keep two seconds later, and answers by it at once.
type promising struct {
	*vault
	mu      sync.Mutex
	waiting map[string]provision.Mark
}

func (x *promising) Mark(_ context.Context, id string, m provision.Mark) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.waiting[id]
	if !m.Promise.Epoch.IsZero() {
		w.Promise = m.Promise
	}
	if !m.Opened.IsZero() {
		w.Opened = m.Opened
	}
	if !m.Closed.IsZero() {
		w.Closed = m.Closed
	}
	x.waiting[id] = w
	go func() {
		if x.p.passes(x.p.ctx, 2*time.Second) == nil {
			_ = x.vault.Mark(x.p.ctx, id, m)
		}
	}()
	return nil
}

func (x *promising) State(ctx context.Context, id string) (provision.Replica, error) {
	s, err := x.vault.State(ctx, id)
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.waiting[id]
	if w.Promise.Epoch.Number > s.Promise.Epoch.Number {
		s.Promise = w.Promise
	}
	if w.Opened.Number > s.Opened.Number {
		s.Opened = w.Opened
	}
	if w.Closed.Number > s.Closed.Number {
		s.Closed = w.Closed
	}
	return s, err
}

type spotless struct{ *vault }

func (x spotless) State(ctx context.Context, id string) (provision.Replica, error) {
	s, err := x.vault.State(ctx, id)
	s.Dirty = false
	return s, err
}

type asItIs struct{ *vault }

func (x asItIs) Writable(ctx context.Context, id string) (provision.Volume, error) {
	return x.shelves.Get(ctx, id)
}

// once receives a whole copy, and calls each later difference received.
type once struct{ *vault }

func (x once) Fetch(ctx context.Context, f owner.Fetch) error {
	if !f.Base.IsZero() {
		return nil
	}
	return x.vault.Fetch(ctx, f)
}

type forgetting struct{ *vault }

func (x forgetting) RollBack(ctx context.Context, id string, to lineage.Point) error {
	err := x.vault.RollBack(ctx, id, to)
	for _, b := range x.p.m.copyOf(id).Branches {
		_ = x.shelves.replicas.Forget(ctx, id, b.Tip)
	}
	x.p.w.oracle.survives(x.p, "Forget", id)
	return err
}

// recalling looks at a copy anew only after a change that the rules ask for.
type recalling struct {
	*vault
	mu   sync.Mutex
	seen map[string]provision.Replica
}

func (x *recalling) State(ctx context.Context, id string) (provision.Replica, error) {
	x.mu.Lock()
	s, found := x.seen[id]
	x.mu.Unlock()
	if found {
		return s, nil
	}
	s, err := x.vault.State(ctx, id)
	if err == nil {
		x.mu.Lock()
		x.seen[id] = s
		x.mu.Unlock()
	}
	return s, err
}

func (x *recalling) forgets(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.seen, id)
}

func (x *recalling) Mark(ctx context.Context, id string, m provision.Mark) error {
	defer x.forgets(id)
	return x.vault.Mark(ctx, id, m)
}

func (x *recalling) Snapshot(ctx context.Context, q provision.PointRequest) error {
	defer x.forgets(q.Volume)
	return x.vault.Snapshot(ctx, q)
}

func (x *recalling) RollBack(ctx context.Context, id string, to lineage.Point) error {
	defer x.forgets(id)
	return x.vault.RollBack(ctx, id, to)
}

func (x *recalling) Make(ctx context.Context, v *v1alpha1.Volume, size int64) error {
	defer x.forgets(v.Name)
	return x.vault.Make(ctx, v, size)
}

func (x *recalling) Fetch(ctx context.Context, f owner.Fetch) error {
	defer x.forgets(f.Volume)
	return x.vault.Fetch(ctx, f)
}
