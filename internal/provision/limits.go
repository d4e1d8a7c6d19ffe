package provision

import (
	"fmt"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/quantity"
)

// Limits say how far the volumes of a class may use a pool. The zero value allows a
// pool's whole size, promised once.
type Limits struct {
	// Spare bytes plus SparePercent of the pool's size stay free.
	Spare        int64
	SparePercent int
	// Overprovision is how many percent of a thin pool may be promised; less than
	// 100 means 100.
	Overprovision int
	// MaxFill closes a thin pool to everything new once its data or its metadata is full
	// to this many percent; 0 means 100.
	MaxFill int
}

// MaxOverprovision in percent: a hundred times the pool's size. More is a typing error.
const MaxOverprovision = 10000

// Room returns how many more bytes a pool may promise to volumes with these limits, in
// whole units.
func (l Limits) Room(p Pool) int64 {
	if p.Unit <= 0 {
		return 0
	}
	room, _ := l.room(p)
	return max(room, 0) / p.Unit * p.Unit
}

// Admit returns nil if a pool has room for this many more bytes, and else an error of class
// ErrNoSpace that says how full the pool is.
func (l Limits) Admit(p Pool, more int64) error {
	room, reason := l.room(p)
	switch {
	case reason == ledger.PoolFull:
		return fmt.Errorf("%w: pool %s is filled too far: %s of %s hold data, and its metadata is %d%% full",
			ErrNoSpace, p.Name, quantity.Bytes(p.Fill.Data), quantity.Bytes(p.Total), p.Fill.Metadata)
	case more > room:
		kept := ""
		if l.Spare > 0 || l.SparePercent > 0 {
			kept = ", less the spare"
		}
		return fmt.Errorf("%w: pool %s has %s free%s, %s more asked",
			ErrNoSpace, p.Name, quantity.Bytes(p.Free), kept, quantity.Bytes(more))
	}
	return nil
}

func (l Limits) room(p Pool) (int64, ledger.Reason) {
	kind := TraitsOf(p.Type).Kind
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
