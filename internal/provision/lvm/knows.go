package lvm

import "berth.dev/berth/internal/provision"

var _ provision.Knower = (*Provisioner)(nil)

// Knows implements provision.Knower.
func (p *Provisioner) Knows(id string) (here, sure bool) {
	p.engine.Lock()
	defer p.engine.Unlock()
	return len(p.state.holders(id)) > 0, p.sure()
}

// sure says that the cache is complete: every group was read, has been watched since, and was
// read again after each change by others, and no own change is under way. The caller holds the
// state's lock.
func (p *reader) sure() bool {
	if p.state.mark.Due() || !p.state.watched {
		return false
	}
	for _, g := range p.state.Units() {
		if g.Mark.Due() || g.Silent != nil || g.Read.IsZero() || g.Busy() {
			return false
		}
	}
	return true
}
