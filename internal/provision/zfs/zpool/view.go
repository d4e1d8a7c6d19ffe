package zpool

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
)

// The kernel's words for the state of a zpool.
const (
	stateOnline    = "ONLINE"
	stateDegraded  = "DEGRADED"
	stateSuspended = "SUSPENDED"
)

// Trouble says why nothing new may be placed in the zpool and what to do about it; empty
// if there is no reason.
func (z *Facts) Trouble(now time.Time) string {
	switch {
	case z.Missing:
		return fmt.Sprintf("zpool %s is not imported: bring its disks back and import it (zpool import %s)", z.Name, z.Name)
	case z.Health == stateSuspended:
		return fmt.Sprintf("zpool %s is suspended: bring its disks back, then clear it (zpool clear %s)", z.Name, z.Name)
	case z.Unfit != "":
		return z.Unfit
	case z.Health == stateDegraded:
		return fmt.Sprintf("zpool %s is degraded: replace the disk that failed (zpool status %s names it)", z.Name, z.Name)
	case z.Health != stateOnline:
		return fmt.Sprintf("zpool %s is %s (zpool status %s says why)", z.Name, z.Health, z.Name)
	case z.Silent != nil && z.Read.IsZero():
		return fmt.Sprintf("ZFS does not answer, nothing is known of zpool %s: %v", z.Name, z.Silent)
	case z.Read.IsZero():
		return fmt.Sprintf("zpool %s was not read yet", z.Name)
	case z.Silent != nil:
		return fmt.Sprintf("ZFS does not answer, and its last report of zpool %s is %v old: %v", z.Name, now.Sub(z.Read).Round(time.Second), z.Silent)
	case z.Stuck(now):
		return fmt.Sprintf("ZFS has been changing zpool %s for %v", z.Name, now.Sub(z.BusySince()).Round(time.Second))
	}
	return ""
}

// Usable returns why nothing new may be made in the zpool, and nothing grow.
func (z *Facts) Usable(now time.Time) error {
	if z.Missing {
		return fmt.Errorf("%w: %s", provision.ErrPoolMissing, z.Trouble(now))
	}
	if t := z.Trouble(now); t != "" {
		return fmt.Errorf("%w: %s", provision.ErrUnavailable, t)
	}
	return nil
}

// Answers returns why nothing at all can be done with the zpool.
func (z *Facts) Answers(now time.Time) error {
	switch {
	case z.Missing:
		return fmt.Errorf("%w: %s", provision.ErrPoolMissing, z.Trouble(now))
	case z.Health == stateSuspended:
		return fmt.Errorf("%w: %s", provision.ErrUnavailable, z.Trouble(now))
	}
	return nil
}

// View returns one of the volumes as callers see it.
func (z *Facts) View(name string, now time.Time) provision.Volume {
	d := z.Datasets[name]
	v := provision.Volume{
		ID: d.ID, Pool: PoolRef(d.Parent), Size: d.size,
		Content:    provision.Content{Source: deviceDir + name, Identity: provision.ZvolIdentity(name)},
		Filesystem: d.Filesystem, Inline: d.inline, Source: d.source, Claim: d.claim,
	}
	if d.Files() {
		v.Content = provision.Content{Source: name, Tree: provision.Dataset}
	}
	v.Problem = CopiesIn(z).copyOf(d).problem()
	if z.Answers(now) != nil {
		v.Problem = z.Trouble(now)
	}
	return v
}

// ViewSnapshot returns one of the snapshots as callers see it.
func (z *Facts) ViewSnapshot(of string, s *Snapshot, now time.Time) provision.Snapshot {
	d := z.Datasets[of]
	v := provision.Snapshot{
		ID: s.id, Volume: d.ID, Pool: PoolRef(d.Parent), Size: s.size, Allocated: s.allocated, Filesystem: s.filesystem, Taken: s.taken,
	}
	if z.Answers(now) != nil {
		v.Problem = z.Trouble(now)
	}
	return v
}

// Pool returns one of the zpool's pools as callers see it.
func (z *Facts) Pool(parent string, now time.Time) provision.Pool {
	p := z.figures(parent)
	p.Problem = z.Trouble(now)
	for name, d := range z.Datasets {
		if d.Parent != parent {
			continue
		}
		if d.IsVolume() {
			p.Volumes = append(p.Volumes, z.View(name, now))
		}
		for _, s := range d.snapshots {
			if s.id != "" {
				p.Snapshots = append(p.Snapshots, z.ViewSnapshot(name, s, now))
			}
		}
	}
	slices.SortFunc(p.Volumes, func(a, b provision.Volume) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(p.Snapshots, func(a, b provision.Snapshot) int { return cmp.Compare(a.ID, b.ID) })
	return p
}
