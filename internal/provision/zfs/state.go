package zfs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/reading"
	"berth.dev/berth/internal/provision/zfs/zpool"
)

// state holds the facts about all zpools.
type state struct {
	*engine.Book[*zpool.Facts]
	tools fitness
}

// find returns the zpool for which holds is true of an id.
func (s *state) find(id string, holds func(*zpool.Facts, string) bool) (name string, ok bool) {
	for _, z := range s.All() {
		if holds(z, id) {
			name, ok = z.Name, true
		}
	}
	return name, ok
}

// twins returns ErrConflict if two volumes or two snapshots bear an id. One may be a backup that
// was received with its properties. Guessing which one is right could destroy data.
func (s *state) twins(id string) error {
	var volumes, snapshots []string
	for _, z := range s.All() {
		v, s := z.Bear(id)
		volumes, snapshots = append(volumes, v...), append(snapshots, s...)
	}
	return cmp.Or(twinsError(volumes, "volume "+id, zpool.PropVolume), twinsError(snapshots, "snapshot "+id, zpool.PropSnapshot))
}

func twinsError(names []string, what, property string) error {
	if len(names) < 2 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("%w: %s bear the record of %s: take it from those that are copies (zfs inherit %s COPY)",
		provision.ErrConflict, strings.Join(names, " and "), what, property)
}

// taken returns a dataset that is not Berth's and bears a volume's name in some pool.
func (s *state) taken(id string) (dataset string, ok bool) {
	for _, z := range s.All() {
		if name, taken := z.Taken(id); taken {
			dataset, ok = name, true
		}
	}
	return dataset, ok
}

// unanswered returns why ZFS cannot be used on some zpool; nil if it can be on all.
func (s *state) unanswered(now time.Time) error {
	for _, z := range s.All() {
		if z.Unfit != "" || z.Silent != nil || z.Stuck(now) {
			return z.Usable(now)
		}
	}
	return nil
}

// knows says whether just so many zvols are known in the zpools that are there.
func (s *state) knows(zvols int) bool {
	for _, z := range s.All() {
		switch {
		case z.Missing:
		case z.Read.IsZero():
			return false
		default:
			zvols -= z.Zvols() + z.ForeignVolumes
		}
	}
	return zvols == 0
}

// staleOurs notes that the zpools with volumes of Berth's that were last read before a
// time may have changed since.
func (s *state) staleOurs(since time.Time) {
	for _, z := range s.All() {
		if len(z.Datasets) > 0 && z.Read.Before(since) {
			s.Touch(z)
		}
	}
}

func (s *state) pools(now time.Time) (pools []provision.Pool) {
	for _, z := range s.All() {
		if z.Read.IsZero() {
			pools = append(pools, provision.Pool{PoolRef: zpool.PoolRef(z.Name), Unit: zpool.Unit, Problem: z.Trouble(now)})
		}
		for parent := range z.Parents {
			pools = append(pools, z.Pool(parent, now))
		}
	}
	slices.SortFunc(pools, func(a, b provision.Pool) int { return cmp.Compare(a.Name, b.Name) })
	seen := map[string]bool{}
	see := func(id string) {
		if seen[id] {
			s.mark(pools, id)
		}
		seen[id] = true
	}
	for _, p := range pools {
		for _, v := range p.Volumes {
			see(v.ID)
		}
		for _, snapshot := range p.Snapshots {
			see(snapshot.ID)
		}
	}
	return pools
}

// mark gives all volumes or snapshots of an id the problem that there are several.
func (s *state) mark(pools []provision.Pool, id string) {
	err := s.twins(id)
	if err == nil {
		return // it is not so any more
	}
	for _, p := range pools {
		for i, v := range p.Volumes {
			if v.ID == id {
				p.Volumes[i].Problem = provision.Problem(err)
			}
		}
		for i, snapshot := range p.Snapshots {
			if snapshot.ID == id {
				p.Snapshots[i].Problem = provision.Problem(err)
			}
		}
	}
}

// notice takes in which zpools there are and in which state, and says whether that is
// news. A zpool that went and holds volumes stays known, so that its volumes are not
// taken for deleted.
func (s *state) notice(pools []Pool) (news bool) {
	s.Lock()
	defer s.Unlock()
	there := map[string]bool{}
	for _, pool := range pools {
		there[pool.Name] = true
		news = s.noticeOne(pool) || news
	}
	for name, z := range s.Units() {
		switch {
		case there[name] || z.Missing:
		case len(z.Datasets) == 0:
			news = true
			s.Drop(name)
		default:
			news, z.Missing = true, true
		}
	}
	return news
}

func (s *state) noticeOne(pool Pool) (news bool) {
	z := s.Units()[pool.Name]
	if z == nil {
		z = &zpool.Facts{Name: pool.Name, Unfit: s.tools.problem}
		s.Put(pool.Name, z)
	}
	if z.Health == pool.State && !z.Missing {
		return false
	}
	z.Health, z.Missing, z.Silent = pool.State, false, nil
	s.Touch(z)
	return true
}

// apply takes in a report that was asked for at a moment.
func (s *state) apply(z *zpool.Facts, asked reading.Moment, now time.Time) {
	s.With(z.Name, func(old *zpool.Facts) {
		if old == nil {
			return // it went meanwhile
		}
		z.Health, z.Missing, z.Unfit, z.Asking, z.Tidying = old.Health, old.Missing, old.Unfit, old.Asking, old.Tidying
		z.Account, z.Read, z.Silent = old.Account, now, nil
		z.Mark.Read(asked)
		s.Put(z.Name, z)
	})
}

// staleDatasets notes that the zpools with datasets of Berth's that were last read before
// a time may have changed since, and says whether there are any. The kernel shows only zvols.
func (s *state) staleDatasets(since time.Time) (stale bool) {
	for _, z := range s.All() {
		if len(z.Datasets) > z.Zvols() && z.Read.Before(since) {
			stale = true
			s.Touch(z)
		}
	}
	return stale
}
