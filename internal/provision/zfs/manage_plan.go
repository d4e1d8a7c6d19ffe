package zfs

import (
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
)

// verdict is how a wish stands, and what is to be done about it.
type verdict struct {
	// Outcome is what is told when it is done, or when there is nothing to do.
	provision.Outcome
	act act
	// id of the zpool that is to be imported.
	id string
}

// act is what is to be done next.
type act int

const (
	rest     act = iota
	askMark      // find out who made the zpool
	look         // search the disks for it
	bring        // import it
	takeDisk     // make it of disks, or add them
)

// facts are what is known of a zpool that is asked for. It is nil if the kernel has none of
// that name and had none with volumes.
type facts struct {
	*zpool
	finding
	now time.Time
	// maxAge of a finding that others may have made untrue.
	maxAge time.Duration
}

func stands(r provision.Reason, format string, args ...any) verdict {
	return verdict{Outcome: provision.Outcome{Reason: r, Message: fmt.Sprintf(format, args...)}}
}

func (v verdict) then(a act) verdict {
	v.act = a
	return v
}

// judge holds a wish against what is known.
func (f facts) judge(w provision.PoolWish, name string) verdict {
	if f.zpool == nil || f.missing {
		return f.judgeAbsent(w, name)
	}
	made, ours := parseMark(f.mark)
	fresh := !f.marked.IsZero() && f.now.Sub(f.marked) < f.maxAge
	switch trouble := f.trouble(f.now); {
	case trouble != "":
		return stands(provision.PoolTroubled, "zpool %s is not changed: %s", name, trouble)
	case f.marked.IsZero(), !ours && !fresh:
		return verdict{act: askMark}
	case !ours:
		return stands(provision.PoolForeign, "zpool %s was not made by Berth: it is used as it is, and no disk is added to it", name)
	case made != w.Zpool:
		return stands(provision.PoolDiffers, "zpool %s was made as %s, not as %s, and stays so: no disk is added to it", name, describe(made), describe(w.Zpool))
	case len(w.Disks) == 0:
		return stands(provision.PoolAsAsked, "zpool %s is there, as %s, with %s", name, describe(made), quantity.Bytes(f.capacity))
	}
	return stands(provision.PoolGrown, "zpool %s was grown", name).then(takeDisk)
}

// judgeAbsent is judge for a zpool that is not imported. One that is on disks is never made
// anew, nor one that held volumes.
func (f facts) judgeAbsent(w provision.PoolWish, name string) verdict {
	ours := false
	if len(f.onDisks) == 1 {
		_, ours = parseMark(f.onDisks[0].mark)
	}
	switch {
	case len(w.Search) > 0 && !f.searchedOn(w.Search):
		return verdict{act: look}
	case len(f.onDisks) > 1:
		return stands(provision.PoolTroubled, "%d zpools named %s are on the disks, and none is imported: import the right one by its number (zpool import lists them)",
			len(f.onDisks), name)
	case len(f.onDisks) == 1 && !ours:
		return stands(provision.PoolForeign, "zpool %s is on the disks and was not made by Berth: import it (zpool import %s)", name, name)
	case len(f.onDisks) == 1 && f.seen:
		return stands(provision.PoolTroubled, "zpool %s was exported, and stays so until it is imported (zpool import %s) or Berth starts anew", name, name)
	case len(f.onDisks) == 1:
		v := stands(provision.PoolImported, "zpool %s was imported", name).then(bring)
		v.id = f.onDisks[0].id
		return v
	case f.zpool != nil:
		return stands(provision.PoolTroubled, "zpool %s is not made anew: %s", name, f.trouble(f.now))
	case len(w.Disks) == 0:
		return stands(provision.PoolAwaitsDisks, "there is no zpool %s, and no empty disks for a vdev of it (%s)", name, describe(w.Zpool))
	}
	return stands(provision.PoolMade, "zpool %s was made", name).then(takeDisk)
}

// searchedOn says whether it is known what is on disks.
func (f facts) searchedOn(nodes []string) bool {
	return !f.searched.IsZero() && f.now.Sub(f.searched) < f.maxAge && slices.Equal(f.on, nodes)
}

// describe is a layout for people.
func describe(z provision.Zpool) string {
	if z.Layout == provision.ZpoolStripe {
		return fmt.Sprintf("a stripe, ashift %d", z.Ashift)
	}
	return fmt.Sprintf("%s of %d disks, ashift %d", z.Layout, z.Width, z.Ashift)
}
