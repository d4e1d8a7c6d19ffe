package ledger

import (
	"maps"
	"slices"
)

// Ledger records what every pool of every node has promised, by owner. It passes what it observes to the part
// that knows of it, and has all owners settled that the change concerns. The zero Ledger is not usable: call
// New. It is not safe for concurrent use; the Nodes and Snapshots it hands out are.
type Ledger struct {
	*shelf
	*volumes
	*accounts
}

// New returns an empty ledger that is not synced.
func New() *Ledger {
	s := newShelf()
	return &Ledger{shelf: s, volumes: newVolumes(s), accounts: newAccounts(s)}
}

// SetSynced says that every kind of object has been listed once. Before that, the
// ledger answers every question with NotSynced and gives nothing to waiting owners:
// a ledger that has seen the nodes and not yet the volumes would call full pools
// empty.
func (l *Ledger) SetSynced() {
	l.synced = true
	l.revisitAll()
}

// revisitAll settles all owners that wait for a node again.
func (l *Ledger) revisitAll() { l.revisit(slices.Collect(maps.Keys(l.waiting))...) }

// revisit settles the owners that wait for one of the nodes again.
func (l *Ledger) revisit(nodes ...string) {
	for _, o := range l.waiting.owners(nodes) {
		l.review(o)
	}
}

// review settles a volume, or an account and the volumes it is linked to.
func (l *Ledger) review(o Owner) {
	if o.Kind == ByVolume {
		if v := l.volumes.byName[o.ID]; v != nil {
			l.settleVolume(v)
		}
		return
	}
	a := l.accounts.byOwner[o]
	if a == nil {
		return
	}
	for _, v := range slices.Clone(a.links) {
		l.settleVolume(v)
	}
	l.accounts.settle(a)
}

// settleVolume brings a volume's charges, and the accounts of its claims, in line
// with all that is known. The volume comes first, because its charges decide how
// much room is left for the accounts.
func (l *Ledger) settleVolume(v *volume) {
	before := v.linked
	l.accounts.link(v, l.volumes.claims(v))
	v.settle(l.shelf, l.accounts.wish(v))
	for _, uid := range before {
		if !slices.Contains(v.linked, uid) {
			l.accounts.settle(l.accounts.of(Claim(uid)))
		}
	}
	for _, uid := range v.linked {
		l.accounts.settle(l.accounts.of(Claim(uid)))
	}
	l.volumes.tidy(v)
}
