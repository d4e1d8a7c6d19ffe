package oracle

import (
	"math/big"

	"berth.dev/berth/internal/ledger"
)

// The measures of the ledger, implemented once more: with integers that cannot
// overflow, and in the plainest form.

const ceiling = int64(1) << 61

func capped(n *big.Int) int64 {
	if !n.IsInt64() || n.Int64() > ceiling {
		return ceiling
	}
	return n.Int64()
}

// small is the size below which plain integers are safe: nearly every size.
const small = int64(1) << 40

// charge of a volume on a pool.
func charge(p *ledger.Pool, c ledger.Class, bytes int64) int64 {
	switch p.Kind {
	case nil:
		return min(bytes, ceiling)
	case ledger.Slots:
		return 1
	case ledger.Device:
		return min(max(bytes, p.Total), ceiling)
	case ledger.Thin:
		c.Layout = ledger.Layout{}
	}
	stripes, mirrors := max(1, c.Layout.Stripes), max(1, c.Layout.Mirrors)
	images := stripes*mirrors + c.Layout.Parity
	if bytes < small && p.Unit < small>>20 {
		units := (bytes + p.Unit - 1) / p.Unit
		each := (units+stripes-1)/stripes + c.Layout.Metadata
		return each * images * p.Unit
	}
	n := new(big.Int).Add(big.NewInt(bytes), big.NewInt(p.Unit-1))
	n.Div(n, big.NewInt(p.Unit)).Add(n, big.NewInt(stripes-1)).Div(n, big.NewInt(stripes))
	n.Add(n, big.NewInt(c.Layout.Metadata)).Mul(n, big.NewInt(images)).Mul(n, big.NewInt(p.Unit))
	return capped(n)
}

// percentUp is a share of a figure below 2^56, rounded up.
func percentUp(of int64, share int) int64 { return (of*int64(share) + 99) / 100 }

// limit of a class on a pool, and whether the pool is open for it.
func limit(p *ledger.Pool, c ledger.Class) (int64, bool) {
	media := c.Media == "" || c.Media == p.Media
	usable := p.Total - c.Spare - percentUp(p.Total, c.SparePercent)
	switch p.Kind {
	case ledger.Slots:
		return p.Total - c.Spare, true
	case ledger.Device:
		return p.Total, media
	case ledger.Thin:
		full := 100
		if c.MaxFill > 0 {
			full = c.MaxFill
		}
		open := media && p.Filled < usable && p.Filled < percentUp(p.Total, full) && p.FilledMetadata < full
		if usable > 0 && c.Overprovision > 100 {
			usable = percentUp(usable, c.Overprovision)
		}
		return usable, open
	default:
		return usable, media
	}
}
