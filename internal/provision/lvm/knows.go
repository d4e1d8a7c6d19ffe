package lvm

import "berth.dev/berth/internal/provision"

var _ provision.Knower = (*Provisioner)(nil)

// Knows implements provision.Knower.
func (p *Provisioner) Knows(id string) (here, sure bool) {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	return len(p.state.holders(id)) > 0, p.state.sure()
}

// sure says that all is known: every group has been read and is watched since, nobody
// changed one that was not read again, and no own change is under way. It is called within
// with.
func (s *state) sure() bool {
	if !s.loaded || s.mark.Due() || !s.watched {
		return false
	}
	for _, g := range s.groups {
		if g.mark.Due() || g.silent != nil || g.read.IsZero() || !g.busySince.IsZero() {
			return false
		}
	}
	return true
}
