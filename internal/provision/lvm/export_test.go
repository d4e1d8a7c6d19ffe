package lvm

// Halted is how many copies somebody keeps from being filled.
func (p *Provisioner) Halted() int {
	p.copying.mu.Lock()
	defer p.copying.mu.Unlock()
	return len(p.copying.halted)
}
