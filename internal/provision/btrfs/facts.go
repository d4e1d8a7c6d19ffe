package btrfs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/engine"
)

// facts holds the facts about one filesystem.
type facts struct {
	engine.Account
	fsid, label string
	space       kernel.Space
	// total is how many bytes of data there is room for. trouble says why that is not known, or
	// why the filesystem is of no use.
	total   int64
	trouble string
	// The entries of the areas, by their names.
	volumes, snapshots, trash, making map[string]*entry
	// others are the names in the areas of volumes and snapshots whose directories have no record of
	// Berth's.
	others map[string]bool
	// missing is set when a filesystem with volumes is not mounted any more.
	missing bool
	// asking is set while a reading has no answer, and tidying while one tidies up.
	asking, tidying bool
	// failed is set when tidying up failed, until the filesystem is read again.
	failed bool
}

// entry is a volume or a snapshot.
type entry struct {
	record
	// inode of its directory; 0 if it was not read since it was made.
	inode uint64
	// root is its subvolume; zero if it is not there.
	root kernel.Root
	// within are the subvolumes that its tenant made in it, the innermost first.
	within []kernel.Root
	// taken is how many bytes it takes, with those within, and bound its limit; 0 for none.
	taken, bound int64
	// astray are those of a volume's subvolumes that do not count for its limit alone, and the
	// volumes that they count for.
	astray map[uint64][]uint64
	// why it could not be removed.
	stuck string
	// held is what a copy of a replicated volume holds; nil for another volume.
	held *held
}

// readBefore returns the volumes and snapshots that were read, by their areas, without those of some ids.
func (u *facts) readBefore(but []string) map[string]map[string]*entry {
	all := map[string]map[string]*entry{volumesArea: {}, snapshotsArea: {}}
	for area, entries := range map[string]map[string]*entry{volumesArea: u.volumes, snapshotsArea: u.snapshots} {
		for id, e := range entries {
			if e.inode != 0 && !slices.Contains(but, id) {
				one := *e
				all[area][id] = &one
			}
		}
	}
	return all
}

func (u *facts) ref() provision.PoolRef {
	return provision.PoolRef{Type: provision.Btrfs, Name: provision.BtrfsPrefix + u.label}
}

// strange says that the subvolume of an entry is not the one of its record.
func (e *entry) strange() string {
	switch {
	case e.root.ID == 0:
		return fmt.Sprintf("its subvolume %d is not there", e.Subvolume.ID)
	case e.root.Subvolume != e.Subvolume:
		return fmt.Sprintf("in place of its subvolume %d (%s) there is %d (%s)", e.Subvolume.ID, e.Subvolume.UUID, e.root.ID, e.root.UUID)
	}
	return ""
}

// sound returns ErrConflict for a volume or snapshot whose subvolume was replaced.
func (e *entry) sound() error {
	if why := e.strange(); why != "" {
		return fmt.Errorf("%w: %s: %s", provision.ErrConflict, e.ID, why)
	}
	return nil
}

// Trouble says why nothing new may be placed in the filesystem; empty if there is no reason.
func (u *facts) Trouble(now time.Time) string {
	switch {
	case u.missing:
		return fmt.Sprintf("filesystem %s is not mounted on the node: bring its disks back and mount it", u.label)
	case u.Silent != nil:
		return fmt.Sprintf("filesystem %s does not answer: %v", u.label, u.Silent)
	case u.Read.IsZero():
		return fmt.Sprintf("filesystem %s was not read yet", u.label)
	case u.Stuck(now):
		return fmt.Sprintf("filesystem %s has been changing for %v", u.label, now.Sub(u.BusySince()).Round(time.Second))
	case u.trouble != "":
		return fmt.Sprintf("filesystem %s: %s", u.label, u.trouble)
	}
	return ""
}

// usable returns why nothing new may be made in the filesystem, and nothing grow.
func (u *facts) usable(now time.Time) error {
	switch why := u.Trouble(now); {
	case u.missing:
		return fmt.Errorf("%w: %s", provision.ErrPoolMissing, why)
	case why != "":
		return fmt.Errorf("%w: %s", provision.ErrUnavailable, why)
	}
	return nil
}

// known returns why nothing is certain about the filesystem; nil if its facts count. They count also
// while it has been changing for long.
func (u *facts) known() error {
	if u.missing || u.Read.IsZero() {
		return u.usable(time.Time{})
	}
	return nil
}

// view returns a volume as callers see it.
func (u *facts) view(e *entry) provision.Volume {
	v := provision.Volume{
		ID: e.ID, Pool: u.ref(), Size: e.Size, Filesystem: e.Filesystem, Inline: e.Inline, Source: e.Source, Claim: provision.ClaimOf(e.Labels), Problem: e.strange(),
		Content: provision.Content{
			Source:   fmt.Sprintf("%s[/%s/%s/data]", u.space.Node, volumesArea, e.ID),
			Identity: kernel.Identity(u.fsid, e.Subvolume), Tree: provision.Subvolume,
		},
	}
	if e.held != nil {
		v.Problem = e.held.problem(v.Problem)
	}
	if u.missing || u.Read.IsZero() {
		v.Problem = u.Trouble(time.Time{})
	}
	return v
}

func (u *facts) viewSnapshot(e *entry, t tally) provision.Snapshot {
	s := provision.Snapshot{
		ID: e.ID, Volume: e.Volume, Pool: u.ref(), Size: e.Size, Allocated: t.keeps(e), Filesystem: e.Filesystem, Taken: e.Taken, Problem: e.strange(),
	}
	if u.missing || u.Read.IsZero() {
		s.Problem = u.Trouble(time.Time{})
	}
	return s
}

// pool returns the filesystem as callers see it.
func (u *facts) pool(now time.Time) provision.Pool {
	t := u.tally()
	p := u.figures(t)
	p.Problem = u.Trouble(now)
	for _, id := range slices.Sorted(maps.Keys(u.volumes)) {
		p.Volumes = append(p.Volumes, u.view(u.volumes[id]))
	}
	for _, id := range slices.Sorted(maps.Keys(u.snapshots)) {
		p.Snapshots = append(p.Snapshots, u.viewSnapshot(u.snapshots[id], t))
	}
	for _, id := range slices.Sorted(maps.Keys(u.trash)) {
		if e := u.trash[id]; e.Volume == "" {
			v := u.view(e)
			v.Content, v.Problem = provision.Content{}, e.stuck
			p.Wiping = append(p.Wiping, v)
		}
	}
	return p
}

// untidy says whether something is left over: of changes that a crash ended, of what was deleted,
// or of what tenants did.
func (u *facts) untidy() bool {
	return !u.missing && (len(u.making)+len(u.trash)+len(u.unlimited())+len(u.leftovers()) > 0)
}

// unlimited are the volumes whose limit is not as it should be, or does not cover all that is in
// them: when a tenant makes a subvolume, it may choose for which volumes that counts.
func (u *facts) unlimited() (volumes []*entry) {
	if u.space.Quotas != simpleQuotas {
		return nil
	}
	t := u.tally()
	for _, v := range u.volumes {
		if v.strange() == "" && (v.bound != t.limit(v) || len(v.astray) > 0) {
			volumes = append(volumes, v)
		}
	}
	return slices.SortedFunc(slices.Values(volumes), func(a, b *entry) int { return cmp.Compare(a.ID, b.ID) })
}
