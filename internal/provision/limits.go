package provision

import (
	"fmt"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/quantity"
)

// Limits are how far the volumes of a class may use a pool. The zero value is a
// pool's whole size, promised once.
type Limits struct {
	// Spare bytes, and SparePercent of the pool's size, stay free: both together.
	Spare        int64
	SparePercent int
	// Overprovision is how many percent of a thin pool may be promised; less than
	// 100 means 100.
	Overprovision int
	// MaxFill closes a thin pool once its data or its metadata is filled to so many
	// percent; 0 means 100.
	MaxFill int
}

// MaxOverprovision in percent: a hundred times what there is. More is a slip of the pen.
const MaxOverprovision = 10000

// kinds of the pools of each provisioner.
var kinds = map[string]ledger.Kind{LVM: ledger.Thick, LVMThin: ledger.Thin, ZFS: ledger.Thick, Device: ledger.Device}

// Kind is how the pools of a type of provisioner are reckoned, here and by the
// schedulers alike; nil for a type that is not known.
func Kind(provisioner string) ledger.Kind { return kinds[provisioner] }

// Room is how many more bytes volumes of these limits may be promised in a pool, in
// whole units.
func (l Limits) Room(p Pool) int64 {
	if p.Unit <= 0 {
		return 0
	}
	room, _ := l.room(p)
	return max(room, 0) / p.Unit * p.Unit
}

// Admit returns nil if a pool takes so many more bytes, and else an error of class
// ErrNoSpace that says what the pool has.
func (l Limits) Admit(p Pool, more int64) error {
	room, reason := l.room(p)
	switch {
	case reason == ledger.PoolFull:
		return fmt.Errorf("%w: pool %s is filled too far: %s of %s hold data, and its metadata is %d%% full",
			ErrNoSpace, p.Name, quantity.Bytes(p.Fill.Data), quantity.Bytes(p.Total), p.Fill.Metadata)
	case more > room:
		kept := ""
		if l.Spare > 0 || l.SparePercent > 0 {
			kept = ", less what is kept spare"
		}
		return fmt.Errorf("%w: pool %s has %s free%s, %s more asked",
			ErrNoSpace, p.Name, quantity.Bytes(p.Free), kept, quantity.Bytes(more))
	}
	return nil
}

func (l Limits) room(p Pool) (int64, ledger.Reason) {
	kind := Kind(p.Type)
	if kind == nil {
		return 0, ledger.Fits
	}
	limit, reason := kind.Limit(
		&ledger.Pool{Total: p.Total, Filled: p.Fill.Data, FilledMetadata: p.Fill.Metadata},
		&ledger.Class{Spare: l.Spare, SparePercent: l.SparePercent, Overprovision: l.Overprovision, MaxFill: l.MaxFill},
	)
	if reason != ledger.Fits {
		return 0, reason
	}
	return limit - (p.Total - p.Free), reason
}

func (l Limits) check() error {
	switch {
	case l.Spare < 0 || l.Spare > MaxSize:
		return fmt.Errorf("%w: spare %d is not between 0 and %d bytes", ErrInvalid, l.Spare, int64(MaxSize))
	case l.SparePercent < 0 || l.SparePercent > 100:
		return fmt.Errorf("%w: a spare of %d percent is not between 0 and 100", ErrInvalid, l.SparePercent)
	case l.Overprovision < 0 || l.Overprovision > MaxOverprovision:
		return fmt.Errorf("%w: over-provisioning %d percent is not between 0 and %d", ErrInvalid, l.Overprovision, MaxOverprovision)
	case l.MaxFill < 0 || l.MaxFill > 100:
		return fmt.Errorf("%w: a fill of %d percent is not between 0 and 100", ErrInvalid, l.MaxFill)
	}
	return nil
}
