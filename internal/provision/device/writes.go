package device

import (
	"slices"

	"berth.dev/berth/internal/provision/device/gpt"
)

// writes bring a disk from what it bears to a record, or to none, which takes the
// table away. After each of them the disk is still known for what it was, or already for
// what it becomes. A table of which a part is missing is completed first: the part that is
// there would otherwise be changed while nothing else tells what the disk is.
func (c content) writes(g gpt.Geometry, to *record) []gpt.Write {
	var writes []gpt.Write
	if c.kind == ours && !c.complete {
		writes = g.Writes(c.record.partition())
	}
	switch {
	case to == nil && c.kind == ours:
		return append(writes, removal(g, c.record)...)
	case to == nil || c.kind == ours && *to == c.record:
		return writes
	default:
		return append(writes, g.Writes(to.partition())...)
	}
}

// removal takes a table away in the order opposite to that in which it was written.
func removal(g gpt.Geometry, r record) []gpt.Write {
	writes := g.Writes(r.partition())
	slices.Reverse(writes)
	for i := range writes {
		writes[i].Data = make([]byte, len(writes[i].Data))
	}
	return writes
}
