package engine

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"berth.dev/berth/internal/provision/reading"
)

// Unit holds a backend's facts about one unit: a pointer to a type that embeds an Account.
type Unit interface {
	comparable
	account() *Account
}

// Book holds the facts about all units, by name. The zero value is ready to use.
type Book[U Unit] struct {
	mu     sync.Mutex
	units  map[string]U
	clock  reading.Clock
	loaded bool
}

// With calls f with a unit, nil if there is none, under the lock.
func (b *Book[U]) With(name string, f func(U)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.units[name])
}

// All yields the units in the order of their names, under the lock. Of the Book the loop may
// call only Units, Put, Drop and Touch.
func (b *Book[U]) All() iter.Seq2[string, U] {
	return func(yield func(string, U) bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(b.units)) {
			if u, ok := b.units[name]; ok && !yield(name, u) {
				return
			}
		}
	}
}

// Lock takes the lock, for a caller that looks at several units at once.
func (b *Book[U]) Lock() { b.mu.Lock() }

// Unlock gives the lock back.
func (b *Book[U]) Unlock() { b.mu.Unlock() }

// Units returns the units for a caller that has the lock.
func (b *Book[U]) Units() map[string]U { return b.units }

// Put notes a unit, for a caller that has the lock.
func (b *Book[U]) Put(name string, u U) {
	if b.units == nil {
		b.units = map[string]U{}
	}
	b.units[name] = u
}

// Drop forgets a unit, for a caller that has the lock.
func (b *Book[U]) Drop(name string) { delete(b.units, name) }

// Touch notes that others may have changed a unit, for a caller that has the lock.
func (b *Book[U]) Touch(u U) { u.account().Mark.Changed(b.clock.Now()) }

// Moment returns the present moment, for a caller that has the lock.
func (b *Book[U]) Moment() reading.Moment { return b.clock.Now() }

// Asked returns the moment at which a query begins. A unit that others changed stays due until
// the backend takes in the answer to a query that began after the change.
func (b *Book[U]) Asked() reading.Moment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clock.Now()
}

// Changed notes that others may have changed a unit, if there is one of that name.
func (b *Book[U]) Changed(name string) {
	var none U
	b.With(name, func(u U) {
		if u != none {
			b.Touch(u)
		}
	})
}

// ChangedAll notes that others may have changed any unit.
func (b *Book[U]) ChangedAll() {
	for _, u := range b.All() {
		b.Touch(u)
	}
}

// Names returns the names of all units.
func (b *Book[U]) Names() []string { return b.pick(func(*Account) bool { return true }) }

func (b *Book[U]) pick(wanted func(a *Account) bool) (names []string) {
	for name, u := range b.All() {
		if wanted(u.account()) {
			names = append(names, name)
		}
	}
	return names
}

// Due returns the names of the units that must be read again. It leaves out a unit whose tools
// were silent, which would hold up the others. The backend asks such a unit again now and then.
func (b *Book[U]) Due() []string {
	return b.pick(func(a *Account) bool { return a.Mark.Due() && a.Silent == nil })
}

// Silent returns the names of the units whose tools gave no answer the last time.
func (b *Book[U]) Silent() []string {
	return b.pick(func(a *Account) bool { return a.Silent != nil })
}

// IsDue says whether a unit must be read.
func (b *Book[U]) IsDue(name string) (due bool) {
	var none U
	b.With(name, func(u U) { due = u != none && u.account().Mark.Due() })
	return due
}

// Unread returns the name of a unit that was never read, if there is one.
func (b *Book[U]) Unread() (name string, ok bool) {
	names := b.pick(func(a *Account) bool { return a.Read.IsZero() })
	if len(names) == 0 {
		return "", false
	}
	return names[0], true
}
