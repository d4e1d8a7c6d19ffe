package lineage

import "fmt"

// Epoch names one uninterrupted right to write a volume. Number gives the order
// in which a healthy control plane handed epochs out; ID makes the epoch unique
// even when the control plane forgot that it handed the number out before.
// The zero Epoch means "none".
type Epoch struct {
	Number uint64
	ID     string
}

// IsZero tells whether e is no epoch at all.
func (e Epoch) IsZero() bool { return e == Epoch{} }

func (e Epoch) String() string {
	if e.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%d/%s", e.Number, e.ID)
}

// Next returns the epoch after every number known to the caller: the API's, its
// own promise, its peers' promises and the keys found on a shared disk. The API
// alone is not enough, because it may have been restored from an old backup.
func Next(id string, known ...uint64) Epoch {
	var highest uint64
	for _, n := range known {
		highest = max(highest, n)
	}
	return Epoch{Number: highest + 1, ID: id}
}

// Point is the identity of a snapshot: the epoch that wrote it and its sequence
// number. The zero Point means "no snapshot".
type Point struct {
	Epoch Epoch
	Seq   uint64
}

// IsZero tells whether p is no snapshot at all.
func (p Point) IsZero() bool { return p == Point{} }

func (p Point) String() string {
	if p.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%d@%s", p.Seq, p.Epoch)
}
