package zfs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/reading"
)

// state is what is known of all zpools.
type state struct {
	mu     sync.Mutex
	zpools map[string]*zpool
	// loaded is set once all zpools were asked for.
	loaded bool
	clock  reading.Clock
	tools  fitness
}

// with runs f on a zpool, nil if there is none, under the state's lock.
func (s *state) with(name string, f func(*zpool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.zpools[name])
}

// each runs f on every zpool, under the state's lock.
func (s *state) each(f func(*zpool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, z := range s.zpools {
		f(z)
	}
}

// find returns the zpool that holds what bears an id.
func (s *state) find(id string, holds func(*zpool, string) bool) (name string, ok bool) {
	s.each(func(z *zpool) {
		if holds(z, id) {
			name, ok = z.name, true
		}
	})
	return name, ok
}

// twins returns why a volume's id is of no use, if two bear it: a backup that was
// received with its properties, for one. Guessing which is right could destroy data.
func (s *state) twins(id string) error {
	var names []string
	s.each(func(z *zpool) {
		for name, d := range z.datasets {
			if d.id == id && d.isVolume() {
				names = append(names, name)
			}
		}
	})
	if len(names) < 2 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("%w: %s bear the record of volume %s: take it from those that are copies (zfs inherit %s COPY)",
		provision.ErrConflict, strings.Join(names, " and "), id, propVolume)
}

// taken returns the dataset of others that bears a volume's name in some pool.
func (s *state) taken(id string) (dataset string, ok bool) {
	s.each(func(z *zpool) {
		for parent := range z.parents {
			if name := liveName(parent, id); z.others[name] {
				dataset, ok = name, true
			}
		}
	})
	return dataset, ok
}

// unread returns a zpool of which nothing but its name is known.
func (s *state) unread() (name string, ok bool) {
	s.each(func(z *zpool) {
		if z.read.IsZero() {
			name, ok = z.name, true
		}
	})
	return name, ok
}

// unanswered returns why ZFS cannot be managed, if it cannot for some zpool.
func (s *state) unanswered(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.zpools)) {
		if z := s.zpools[name]; z.unfit != "" || z.silent != nil || z.stuck(now) {
			return z.usable(now)
		}
	}
	return nil
}

// knows says whether so many zvols are just those that are known, in zpools that are there.
func (s *state) knows(zvols int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, z := range s.zpools {
		switch {
		case z.missing:
		case z.read.IsZero():
			return false
		default:
			zvols -= z.zvols() + z.foreignVolumes
		}
	}
	return zvols == 0
}

// staleOurs notes that any zpool with volumes of Berth's may have changed since a time.
func (s *state) staleOurs(since time.Time) {
	s.each(func(z *zpool) {
		if len(z.datasets) > 0 && z.read.Before(since) {
			z.reading.Changed(s.clock.Now())
		}
	})
}

// staleAll notes that any zpool may have changed.
func (s *state) staleAll() { s.each(func(z *zpool) { z.reading.Changed(s.clock.Now()) }) }

// changed notes that a zpool may have changed.
func (s *state) changed(name string) {
	s.with(name, func(z *zpool) {
		if z != nil {
			z.reading.Changed(s.clock.Now())
		}
	})
}

// isBehind says whether a zpool may have changed since it was read, or was never read.
func (s *state) isBehind(name string) (behind bool) {
	s.with(name, func(z *zpool) { behind = z != nil && z.reading.Due() })
	return behind
}

func (s *state) names() (names []string) {
	s.each(func(z *zpool) { names = append(names, z.name) })
	return names
}

// due returns the zpools to be read again, with those that somebody reads for the first
// time just now: there is nothing to tell of them yet. Those that do not answer are left out,
// so that they hold up nobody: they are asked again now and then.
func (s *state) due() (names []string) {
	s.each(func(z *zpool) {
		if z.reading.Due() && z.silent == nil {
			names = append(names, z.name)
		}
	})
	return names
}

func (s *state) pools(now time.Time) (pools []provision.Pool) {
	s.each(func(z *zpool) {
		if z.read.IsZero() {
			pools = append(pools, provision.Pool{PoolRef: poolRef(z.name), Unit: Unit, Problem: z.trouble(now)})
		}
		for parent := range z.parents {
			pools = append(pools, z.pool(parent, now))
		}
	})
	slices.SortFunc(pools, func(a, b provision.Pool) int { return cmp.Compare(a.Name, b.Name) })
	seen := map[string]bool{}
	for _, p := range pools {
		for _, v := range p.Volumes {
			if seen[v.ID] {
				s.mark(pools, v.ID)
			}
			seen[v.ID] = true
		}
	}
	return pools
}

// mark gives all volumes of an id the problem that there are several.
func (s *state) mark(pools []provision.Pool, id string) {
	for _, p := range pools {
		for i, v := range p.Volumes {
			if err := s.twins(id); v.ID == id && err != nil {
				p.Volumes[i].Problem = provision.Problem(err)
			}
		}
	}
}

// notice takes in which zpools there are and how they are, and says whether that is
// news. One that went and holds volumes stays known, so that nobody takes them for
// deleted.
func (s *state) notice(pools []Pool) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.zpools == nil {
		s.zpools = map[string]*zpool{}
	}
	there := map[string]bool{}
	for _, pool := range pools {
		there[pool.Name] = true
		z := s.zpools[pool.Name]
		if z == nil {
			z = &zpool{name: pool.Name, unfit: s.tools.problem}
			s.zpools[pool.Name] = z
		}
		if z.health != pool.State || z.missing {
			news, z.health, z.missing, z.silent = true, pool.State, false, nil
			z.reading.Changed(s.clock.Now())
		}
	}
	for name, z := range s.zpools {
		switch {
		case there[name] || z.missing:
		case len(z.datasets) == 0:
			news = true
			delete(s.zpools, name)
		default:
			news, z.missing = true, true
		}
	}
	return news
}

// apply takes a report in that was asked for at a moment.
func (s *state) apply(z *zpool, asked reading.Moment, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.zpools[z.name]
	if old == nil {
		return // it went meanwhile
	}
	z.health, z.missing, z.activity, z.read = old.health, old.missing, old.activity, now
	z.reading.Read(asked)
	z.unfit = old.unfit
	s.zpools[z.name] = z
}
