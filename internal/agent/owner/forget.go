package owner

import (
	"fmt"

	"berth.dev/berth/internal/ownership"
)

// noteLeaving notes whether the record says that the volume is being deleted, and nothing of it is left here.
func (o actor) noteLeaving(l *look) {
	if v := l.facts.Record; v != nil {
		o.hinted(l.id, func(h *hint) { h.leaves = v.Deleting && left(l, h) })
	}
}

// forget removes what the node keeps of a volume that was deleted. As long as there may be a record, that is
// needed: a node that forgot a promise could write into an epoch that it gave up. That there is no record does
// not prove that none comes back: a backup from before the volume was made looks the same. So forget asks for
// two things: noteLeaving has seen a record of a volume that is being deleted, in which no epoch begins, when
// nothing of the volume was left here; and now there is no record. An agent that ends between the two keeps
// the file. A record that comes back later, with an older backup, finds a disk that this node has left, and
// whose reservation decides which node writes.
func (o actor) forget(l *look) error {
	gone := false
	o.hinted(l.id, func(h *hint) { gone = l.facts.Absent && h.leaves && left(l, h) })
	if !gone {
		return nil
	}
	if err := o.c.World.Erase(l.id); err != nil {
		return fmt.Errorf("volume %s was deleted: %w", l.id, err)
	}
	o.c.Log.Info("a deleted volume is forgotten", "volume", l.id)
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.hints, l.id)
	return nil
}

// left says whether nothing of a volume is on this node: no pod may have it, its last epoch was given up, at
// the guard, too, no data of it is here, and its disk is detached.
func left(l *look, h *hint) bool {
	f := &l.facts
	return !f.Mounted && f.Copy.GaveUp(f.Copy.Opened) && h.told >= f.Copy.Opened.Number && !f.Copy.Exists && f.Disk.Link == ownership.Detached && !h.moving
}
