package zfs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
)

// The kernel's words for a zpool.
const (
	stateOnline    = "ONLINE"
	stateDegraded  = "DEGRADED"
	stateSuspended = "SUSPENDED"
)

// slowChange is when a change of a zpool has run so long that ZFS must hang.
const slowChange = 2 * time.Minute

// trouble is empty, or says why nothing new may be placed in the zpool and what to do
// about it.
func (z *zpool) trouble(now time.Time) string {
	switch {
	case z.missing:
		return fmt.Sprintf("zpool %s is not imported: bring its disks back and import it (zpool import %s)", z.name, z.name)
	case z.health == stateSuspended:
		return fmt.Sprintf("zpool %s is suspended: bring its disks back, then clear it (zpool clear %s)", z.name, z.name)
	case z.unfit != "":
		return z.unfit
	case z.health == stateDegraded:
		return fmt.Sprintf("zpool %s is degraded: replace the disk that failed (zpool status %s names it)", z.name, z.name)
	case z.health != stateOnline:
		return fmt.Sprintf("zpool %s is %s (zpool status %s says why)", z.name, z.health, z.name)
	case z.silent != nil && z.read.IsZero():
		return fmt.Sprintf("ZFS does not answer, nothing is known of zpool %s: %v", z.name, z.silent)
	case z.read.IsZero():
		return fmt.Sprintf("zpool %s was not read yet", z.name)
	case z.silent != nil:
		return fmt.Sprintf("ZFS does not answer, what is known of zpool %s is %v old: %v", z.name, now.Sub(z.read).Round(time.Second), z.silent)
	case z.stuck(now):
		return fmt.Sprintf("ZFS has been changing zpool %s for %v", z.name, now.Sub(z.oldest()).Round(time.Second))
	}
	return ""
}

// stuck says whether a change runs for longer than ZFS takes for any.
func (z *zpool) stuck(now time.Time) bool {
	oldest := z.oldest()
	return !oldest.IsZero() && now.Sub(oldest) > slowChange
}

// usable returns why nothing new may be made in the zpool, and nothing grow.
func (z *zpool) usable(now time.Time) error {
	if z.missing {
		return fmt.Errorf("%w: %s", provision.ErrPoolMissing, z.trouble(now))
	}
	if t := z.trouble(now); t != "" {
		return fmt.Errorf("%w: %s", provision.ErrUnavailable, t)
	}
	return nil
}

// answers returns why nothing at all can be done with the zpool.
func (z *zpool) answers(now time.Time) error {
	switch {
	case z.missing:
		return fmt.Errorf("%w: %s", provision.ErrPoolMissing, z.trouble(now))
	case z.health == stateSuspended:
		return fmt.Errorf("%w: %s", provision.ErrUnavailable, z.trouble(now))
	}
	return nil
}

// view is one of the volumes as the world sees it.
func (z *zpool) view(name string, now time.Time) provision.Volume {
	d := z.datasets[name]
	v := provision.Volume{
		ID: d.id, Pool: poolRef(d.parent), Size: d.size, Device: deviceDir + name,
		Filesystem: d.filesystem, Inline: d.inline, Source: d.source,
	}
	v.Identity = provision.ZvolIdentity(name)
	if d.files() {
		v.Device, v.Identity = name, ""
	}
	if z.answers(now) != nil {
		v.Problem = z.trouble(now)
	}
	return v
}

// viewSnapshot is one of the snapshots as the world sees it.
func (z *zpool) viewSnapshot(of string, s *snapshot, now time.Time) provision.Snapshot {
	d := z.datasets[of]
	v := provision.Snapshot{
		ID: s.id, Volume: d.id, Pool: poolRef(d.parent), Size: s.size, Allocated: s.allocated, Filesystem: s.filesystem, Taken: s.taken,
	}
	if z.answers(now) != nil {
		v.Problem = z.trouble(now)
	}
	return v
}

// pool is one of the zpool's pools as the world sees it.
func (z *zpool) pool(parent string, now time.Time) provision.Pool {
	p := z.figures(parent)
	p.Problem = z.trouble(now)
	for name, d := range z.datasets {
		if d.parent != parent {
			continue
		}
		if d.isVolume() {
			p.Volumes = append(p.Volumes, z.view(name, now))
		}
		for _, s := range d.snapshots {
			if s.id != "" {
				p.Snapshots = append(p.Snapshots, z.viewSnapshot(name, s, now))
			}
		}
	}
	slices.SortFunc(p.Volumes, func(a, b provision.Volume) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(p.Snapshots, func(a, b provision.Snapshot) int { return cmp.Compare(a.ID, b.ID) })
	return p
}
