package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// Lend calls take with the nodes of the disks that are empty, if any is, and returns why
// the others are not lent. It looks at a disk as for a volume, opened exclusively. No volume
// can be made on the disk until take returns.
//
// Berth cannot hold a disk open while LVM takes it: LVM opens the disk exclusively itself.
// In the moment between, only LVM's own search for signatures keeps LVM from taking a disk
// that others have just written to.
func (p *Provisioner) Lend(ctx context.Context, disks []string, take func(nodes []string) error) (refused []error, err error) {
	disks = slices.Clone(disks)
	slices.Sort(disks) // all callers lock disks in this order
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
	defer p.changed.Set()
	defer func() { // before they are unlocked, so that no operation decides by their old content
		for _, pool := range lent {
			p.state.Changed(pool)
		}
	}()
	return refused, take(nodes)
}

// prove returns the node of a disk that is empty, or why it is not lent.
func (r *reader) prove(pool string) (node string, err error) {
	h, err := r.hold(pool)
	if err != nil {
		return "", err
	}
	defer h.release()
	if _, err := r.present(pool); err != nil {
		return "", err // a second path to the disk turned up
	}
	now := disk{pool: pool, Disk: h.disk, content: h.content, Account: engine.Account{Read: r.config.Now()}}
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
