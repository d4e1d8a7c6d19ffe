package device

import (
	"slices"

	"berth.dev/berth/internal/provision/device/gpt"
)

// writes returns the writes that bring a disk from its content to a record, or to none,
// which removes the table. After each write the disk is known by its old record, or already
// by its new one. If a part of the table is missing, the table is completed first: otherwise
// a write would change the only part that tells whose disk it is.
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

// removal removes a table, in the order opposite to that in which it was written.
func removal(g gpt.Geometry, r record) []gpt.Write {
	writes := g.Writes(r.partition())
	slices.Reverse(writes)
	for i := range writes {
		writes[i].Data = make([]byte, len(writes[i].Data))
	}
	return writes
}
