package lvm

// Halted is how many copies somebody keeps from being filled.
func (p *Provisioner) Halted() int {
	p.copying.mu.Lock()
	defer p.copying.mu.Unlock()
	return len(p.copying.halted)
}

// Waiting is how much waits to be removed.
func (p *Provisioner) Waiting() (n int) {
	p.removals.mu.Lock()
	defer p.removals.mu.Unlock()
	for _, waiting := range p.removals.waiting {
		n += len(waiting)
	}
	return n
}
