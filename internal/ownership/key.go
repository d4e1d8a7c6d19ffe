package ownership

import (
	"slices"

	"berth.dev/berth/internal/lineage"
)

// Key is a reservation key. It names the epoch it serves, so that a holder can be
// judged without the API. A standby that shut the writer of that epoch out holds a
// fence key.
type Key struct {
	Node  string
	Epoch lineage.Epoch
	Fence bool
}

// RawKey is a key as a disk stores it. A disk has room for 64 bits (SPC-4, PERSISTENT RESERVE
// OUT), too few for a node and an epoch:
//
//	bit 63      set in every key of Berth
//	bit 62      set in the key of a standby that shut a writer out
//	bit 61      set in the key that a wipe has left
//	bits 60-32  the number of the epoch
//	bits 31-0   a digest of the node and the epoch
//
// So the order of two holders can be read from the disk alone. The record has a table of its keys
// (Volume.Keys), from which a reader learns the node and the id of the epoch. Zero is no key.
type RawKey uint64

const (
	ofBerth   RawKey = 1 << 63
	ofFence   RawKey = 1 << 62
	ofWipe    RawKey = 1 << 61
	maxNumber        = 1<<29 - 1
)

// Raw is the key as a disk stores it, zero for no key.
func (k Key) Raw() RawKey {
	if k == (Key{}) {
		return 0
	}
	digest := uint32(2166136261) // FNV-1a
	for _, s := range [2]string{k.Node, k.Epoch.ID} {
		for i := range len(s) {
			digest = (digest ^ uint32(s[i])) * 16777619
		}
		digest *= 16777619 // ends the name: no name has a zero byte
	}
	raw := ofBerth | RawKey(min(k.Epoch.Number, maxNumber))<<32 | RawKey(digest)
	if k.Fence {
		raw |= ofFence
	}
	return raw
}

// Number is the number of the epoch that the key serves. A key that is not Berth's counts as
// newer than every epoch: nothing may be taken from its holder.
func (r RawKey) Number() uint64 {
	switch {
	case r == 0:
		return 0
	case r&ofBerth == 0:
		return maxNumber + 1
	}
	return uint64(r >> 32 & maxNumber)
}

// maxKeys bounds the table in the record. Of an older key only the number matters, and that can be
// read from the key itself.
const maxKeys = 8

// issue puts a key into the table. Each key is in the record before the disk sees it.
func (v *Volume) issue(k Key) {
	if !v.Kind.Traits().Reserves || slices.Contains(v.Keys, k) {
		return
	}
	from := max(0, len(v.Keys)+1-maxKeys)
	v.Keys = append(append(make([]Key, 0, maxKeys), v.Keys[from:]...), k)
}

// LeftByWipe is the key under which a node leaves a disk that it has wiped, for the key of the wipe itself. A writer that
// was shut out, and is suspended since, stays shut out. The first epoch of the next volume takes the disk from this key,
// and is newer: so a backup of the last volume's record cannot be taken for a later state of the next volume.
func LeftByWipe(of Key) RawKey { return of.Raw() | ofWipe }

// IsLeftByWipe tells whether the key is one that a wipe has left.
func (r RawKey) IsLeftByWipe() bool { return r&ofBerth != 0 && r&ofWipe != 0 }

// readKey finds the key behind a raw one: in the table, or among the keys that promises tell of,
// because the record may have come back from a backup without it.
func readKey(f *NodeFacts, r RawKey) (Key, bool) {
	for _, k := range slices.Backward(f.Record.Keys) {
		if k.Raw() == r {
			return k, true
		}
	}
	if k, ok := keyOf(f.Me, &f.Copy.Promise, r); ok {
		return k, true
	}
	for i := range f.Peers {
		if k, ok := keyOf(f.Peers[i].Node, &f.Peers[i].Copy.Promise, r); ok {
			return k, true
		}
	}
	return Key{Epoch: lineage.Epoch{Number: r.Number()}, Fence: r&ofFence != 0}, false
}

// Issued tells whether a key is one of this volume's.
func (f *NodeFacts) Issued(r RawKey) bool {
	_, known := readKey(f, r)
	return known
}

// keyOf tells whether r is the key of the promise's primary, or the key with which node shut that
// primary out.
func keyOf(node string, p *Promise, r RawKey) (Key, bool) {
	for _, k := range [2]Key{{Node: p.Primary, Epoch: p.Epoch}, {Node: node, Epoch: p.Epoch, Fence: true}} {
		if !p.Epoch.IsZero() && k.Raw() == r {
			return k, true
		}
	}
	return Key{}, false
}
