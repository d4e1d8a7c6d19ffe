package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"berth.dev/berth/internal/provision"
)

// Lend calls take with the nodes of those of the disks that are empty, if any is, and
// returns why the others are not lent. A disk is looked at as for a volume, opened
// exclusively, and no volume can be made on it until take returns.
//
// Nobody can hold a disk open while LVM takes it, which opens it exclusively itself. In
// the moment between, only LVM's own look for signatures keeps it from taking what
// others have just written.
func (p *Provisioner) Lend(ctx context.Context, disks []string, take func(nodes []string) error) (refused []error, err error) {
	disks = slices.Clone(disks)
	slices.Sort(disks) // whoever locks several does so in one order
	disks = slices.Compact(disks)
	for _, pool := range disks {
		unlock, err := p.pools.Lock(ctx, pool)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	var lent, nodes []string
	for _, pool := range disks {
		node, err := p.prove(pool)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		lent, nodes = append(lent, pool), append(nodes, node)
	}
	if len(lent) == 0 {
		return refused, nil
	}
	defer p.signal()
	defer p.staleOf(lent) // before they are unlocked, so that nobody decides by what was there
	return refused, take(nodes)
}

// prove returns the node of a disk that is empty, or why it is not lent.
func (p *Provisioner) prove(pool string) (node string, err error) {
	h, err := p.hold(pool)
	if err != nil {
		return "", err
	}
	defer h.release()
	if _, err := p.present(pool); err != nil {
		return "", err // a second way to it turned up
	}
	now := disk{pool: pool, Disk: h.disk, content: h.content, read: true}
	if held := now.holds(); held != nil {
		return "", fmt.Errorf("%w: disk %s holds volume %s", provision.ErrConflict, pool, held.id)
	}
	if why := now.closed(); why != "" {
		return "", fmt.Errorf("%w: disk %s (%s): %s", provision.ErrConflict, pool, h.disk.Name, why)
	}
	if h.content.kind != empty {
		return "", errors.New("disk " + pool + " is not empty")
	}
	return "/dev/" + h.disk.Name, nil
}

// staleOf notes that disks may have been written.
func (p *Provisioner) staleOf(pools []string) {
	for _, pool := range pools {
		p.state.with(pool, func(d *disk) {
			if d != nil {
				d.stale = true
			}
		})
	}
}
