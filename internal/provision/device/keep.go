package device

import (
	"io"
	"sync"
)

// keeps are the volumes' partitions that are held open, by pool.
//
// Whenever a writer closes a disk, udev makes the kernel forget its partitions and find
// them again, so that a node may vanish just when somebody mounts it. The kernel does not
// do that while a partition is open, so the provisioner has those of volumes open for
// reading. That hinders no mount, and is let go before it matters who else has them open.
type keeps struct {
	mu   sync.Mutex
	open map[string]keep
}

type keep struct {
	path string
	io.Closer
}

// keep holds a volume's partition open. What cannot be opened is no matter here: who
// needs it will see.
func (p *Provisioner) keep(pool, path string) {
	p.keeps.mu.Lock()
	defer p.keeps.mu.Unlock()
	old, kept := p.keeps.open[pool]
	if kept && old.path == path {
		return
	}
	if kept {
		old.Close()
		delete(p.keeps.open, pool)
	}
	if opened, err := p.config.Disks.Keep(path); err == nil {
		if p.keeps.open == nil {
			p.keeps.open = map[string]keep{}
		}
		p.keeps.open[pool] = keep{path, opened}
	}
}

// letGo closes the partitions that are kept and not among those to be kept further.
func (p *Provisioner) letGo(unless func(pool string) bool) {
	p.keeps.mu.Lock()
	defer p.keeps.mu.Unlock()
	for pool, k := range p.keeps.open {
		if !unless(pool) {
			k.Close()
			delete(p.keeps.open, pool)
		}
	}
}
