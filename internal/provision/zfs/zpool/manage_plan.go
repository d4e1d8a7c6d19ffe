package zpool

import (
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
)

// Intent is the next action for a wish.
type Intent struct {
	// Outcome is reported when the action is done, or when there is nothing to do.
	provision.Outcome
	Act act
	// ID of the zpool that is to be imported.
	ID string
}

// act is the next action for a wish.
type act int

const (
	Rest     act = iota
	AskMark      // find out who made the zpool
	Look         // search the disks for it
	Bring        // import it
	TakeDisk     // make it of disks, or add them
)

// Case holds the facts and the finding about a zpool that a wish asks for. Facts is nil if the
// kernel has no zpool of that name and had none with volumes.
type Case struct {
	*Facts
	Finding
	Now time.Time
	// MaxAge is how old a finding may be if others may have made it untrue.
	MaxAge time.Duration
}

// Stands returns an Intent to do nothing.
func Stands(r provision.Reason, format string, args ...any) Intent {
	return Intent{Outcome: provision.Outcome{Reason: r, Message: fmt.Sprintf(format, args...)}}
}

func (i Intent) then(a act) Intent {
	i.Act = a
	return i
}

// Judge decides on a wish from the facts and the finding.
func (f Case) Judge(w provision.PoolWish, name string) Intent {
	if f.Facts == nil || f.Missing {
		return f.judgeAbsent(w, name)
	}
	made, ours := parseMark(f.Mark)
	fresh := !f.Marked.IsZero() && f.Now.Sub(f.Marked) < f.MaxAge
	switch trouble := f.Trouble(f.Now); {
	case trouble != "":
		return Stands(provision.PoolTroubled, "zpool %s is not changed: %s", name, trouble)
	case f.Marked.IsZero(), !ours && !fresh:
		return Intent{Act: AskMark}
	case !ours:
		return Stands(provision.PoolForeign, "zpool %s was not made by Berth: it is used as it is, and no disk is added to it", name)
	case made != w.Layout:
		return Stands(provision.PoolDiffers, "zpool %s was made as %s, not as %s, and stays so: no disk is added to it", name, describe(made), describe(w.Layout))
	case len(w.Disks) == 0:
		return Stands(provision.PoolAsAsked, "zpool %s is there, as %s, with %s", name, describe(made), quantity.Bytes(f.capacity))
	}
	return Stands(provision.PoolGrown, "zpool %s was grown", name).then(TakeDisk)
}

// judgeAbsent is Judge for a zpool that is not imported. A zpool that is on disks or that held
// volumes is never made anew.
func (f Case) judgeAbsent(w provision.PoolWish, name string) Intent {
	ours := false
	if len(f.OnDisks) == 1 {
		_, ours = parseMark(f.OnDisks[0].Mark)
	}
	switch {
	case len(w.Search) > 0 && !f.searchedOn(w.Search):
		return Intent{Act: Look}
	case len(f.OnDisks) > 1:
		return Stands(provision.PoolTroubled, "%d zpools named %s are on the disks, and none is imported: import the right one by its number (zpool import lists them)",
			len(f.OnDisks), name)
	case len(f.OnDisks) == 1 && !ours:
		return Stands(provision.PoolForeign, "zpool %s is on the disks and was not made by Berth: import it (zpool import %s)", name, name)
	case len(f.OnDisks) == 1 && f.Seen:
		return Stands(provision.PoolTroubled, "zpool %s was exported, and stays so until it is imported (zpool import %s) or Berth starts anew", name, name)
	case len(f.OnDisks) == 1:
		i := Stands(provision.PoolImported, "zpool %s was imported", name).then(Bring)
		i.ID = f.OnDisks[0].ID
		return i
	case f.Facts != nil:
		return Stands(provision.PoolTroubled, "zpool %s is not made anew: %s", name, f.Trouble(f.Now))
	case len(w.Disks) == 0:
		return Stands(provision.PoolAwaitsDisks, "there is no zpool %s, and no empty disks for a vdev of it (%s)", name, describe(w.Layout))
	}
	return Stands(provision.PoolMade, "zpool %s was made", name).then(TakeDisk)
}

// searchedOn says whether just these disks were searched, no longer ago than MaxAge.
func (f Case) searchedOn(nodes []string) bool {
	return !f.Searched.IsZero() && f.Now.Sub(f.Searched) < f.MaxAge && slices.Equal(f.On, nodes)
}

// describe returns a layout as text for people.
func describe(z provision.Layout) string {
	if z.Redundancy == provision.Stripe {
		return fmt.Sprintf("a stripe, ashift %d", z.Ashift)
	}
	return fmt.Sprintf("%s of %d disks, ashift %d", z.Redundancy, z.Width, z.Ashift)
}

// Finding holds the results of looking for the zpools of one name.
type Finding struct {
	// Mark of the zpool that is imported, and when it was read; zero if it was not.
	Mark   string
	Marked time.Time
	// OnDisks are the zpools of that name that are not imported. On are the disks that were
	// searched for them, and Searched is when; zero if none were.
	OnDisks  []Found
	On       []string
	Searched time.Time
	// Seen says that this process has seen the zpool imported.
	Seen bool
}

// Found is a zpool that is not imported.
type Found struct{ Name, ID, Mark string }
