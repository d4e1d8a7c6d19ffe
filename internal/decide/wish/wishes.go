package wish

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// The reasons of standings, besides those of provision.
const (
	// Disagrees: an older class asks something else of the pool.
	Disagrees provision.Reason = "Disagrees"
	// Missing: the pool was here, and is not.
	Missing provision.Reason = "Missing"
	// Contested: a disk matches several pools, and is left alone.
	Contested provision.Reason = "Contested"
	// Failing: the last step failed, and is tried again.
	Failing provision.Reason = "Failing"
)

// Facts of a node.
type Facts struct {
	Classes []v1alpha1.PoolClass
	// Labels of the Node.
	Labels map[string]string
	// Pools as last reported.
	Pools []provision.Pool
	// Listed are the names of the pools that the node's StorageNode lists, and of those
	// that Volumes are in.
	Listed []string
}

// Wish is the request of a class for a pool on a node.
type Wish struct {
	// Decision is to ensure the pool, or to refuse the class, and then why.
	decide.Decision
	provision.PoolWish
	// Class that asks.
	Class string
	// Remarks are about disks that match and are not taken.
	Remarks []string
	// Named says that the class names the pool, and asks for no change of it. The node then uses
	// the pool if it is there. Such a wish has no standing.
	Named bool
	// contested says that a remark is about a disk that several pools could have.
	contested bool
	// lost says that the pool was here and is not. Berth asks for it all the same, without
	// disks to make it of: it may be on disks that are here.
	lost bool
}

// Wishes returns the wishes of the classes for a node, a pool before those that are carved out of it.
func Wishes(f Facts) []Wish {
	a := gather(f)
	var wishes []Wish
	for _, m := range a.sorted() {
		if provision.TraitsOf(m.pool.Type).Layouts == nil {
			wishes = append(wishes, a.group(f, m))
		} else {
			wishes = append(wishes, a.laidOut(f, m))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.carved)) {
		wishes = append(wishes, a.pool(f, name))
	}
	return append(append(wishes, a.names()...), a.refused...)
}

// names returns the wishes for the pools that are only named.
func (a asked) names() (wishes []Wish) {
	for pool, class := range a.named {
		if a.made[pool.Name] == nil {
			w := ensure(class, provision.PoolWish{Pool: pool})
			w.Named = true
			wishes = append(wishes, w)
		}
	}
	slices.SortFunc(wishes, func(x, y Wish) int { return strings.Compare(x.Pool.Name, y.Pool.Name) })
	return wishes
}

// Names are the pools that the classes ask Berth to make on a node.
func Names(classes []v1alpha1.PoolClass, labels map[string]string) []string {
	a := gather(Facts{Classes: classes, Labels: labels})
	names := slices.Collect(maps.Keys(a.made))
	for name, p := range a.carved {
		if p.percent > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ensure returns the wish of a class that is heeded.
func ensure(class string, w provision.PoolWish) Wish {
	return Wish{Decision: decide.Decision{Verb: decide.Ensure}, PoolWish: w, Class: class}
}

// refuse says why a wish is not heeded at all.
func refuse(why provision.Outcome) decide.Decision {
	return decide.Decision{Verb: decide.Refuse, Reason: string(why.Reason), Message: why.Message}
}

// group asks for a pool without a layout of all the disks that match its class, are empty, and
// match no other pool.
func (a asked) group(f Facts, m *madeAsked) Wish {
	w := ensure(m.class, provision.PoolWish{Pool: m.pool})
	there := has(f.Pools, w.Pool)
	lost := !there && lists(f.Listed, m.pool.Name)
	switch brought := provision.TraitsOf(m.pool.Type).Brought; {
	case brought && !there:
		w.Search, w.lost = carriers(f, m.disks), lost
	case lost:
		w.Decision = refuse(gone(m.pool.Name))
	}
	if lost {
		return w
	}
	for _, p := range a.empty(f, &w, m.disks, there) {
		w.Disks = append(w.Disks, p.Name)
	}
	slices.Sort(w.Disks)
	w.Disks = w.Disks[:min(len(w.Disks), provision.MaxDisks)]
	return w
}

// empty returns the disks that match, are empty, and match no other pool. For the others it
// remarks why they are not taken.
func (a asked) empty(f Facts, w *Wish, disks *v1alpha1.DevicePools, there bool) (free []provision.Pool) {
	for _, p := range f.Pools {
		if p.Type != provision.Device || !poolclass.Selects(disks, p) {
			continue
		}
		empty := p.Problem == "" && len(p.Volumes)+len(p.Wiping) == 0
		others := a.rivals(p, w.Pool.Name)
		switch {
		case empty && len(others) > 0:
			w.contested = true
			w.Remarks = append(w.Remarks, fmt.Sprintf("%s is left alone, for it also matches %s: let it match one", label(p), strings.Join(others, " and ")))
		case empty:
			free = append(free, p)
		case !there && p.Problem != "":
			w.Remarks = append(w.Remarks, label(p)+": "+p.Problem)
		}
	}
	return free
}

// rivals returns the others that a disk also matches: other pools that are made of disks, and
// classes that hand out disks.
func (a asked) rivals(disk provision.Pool, pool string) (others []string) {
	for _, m := range a.sorted() {
		if m.pool.Name != pool && poolclass.Selects(m.disks, disk) {
			t := provision.TraitsOf(m.pool.Type)
			others = append(others, t.OfDisks+" "+strings.TrimPrefix(m.pool.Name, t.Prefix))
		}
	}
	for _, c := range a.whole {
		if poolclass.Selects(c.Spec.Devices, disk) {
			others = append(others, "PoolClass "+c.Name)
		}
	}
	return others
}

func (a asked) pool(f Facts, name string) Wish {
	p := a.carved[name]
	w := ensure(p.class, provision.PoolWish{
		Pool: p.pool, SizePercent: p.percent, Extension: p.extension,
	})
	if !has(f.Pools, w.Pool) && slices.Contains(f.Listed, name) {
		w.Decision = refuse(gone(name))
	}
	return w
}

func has(pools []provision.Pool, ref provision.PoolRef) bool {
	return slices.ContainsFunc(pools, func(p provision.Pool) bool { return p.PoolRef == ref })
}

// lists says whether a pool or anything in it is listed.
func lists(listed []string, group string) bool {
	return slices.ContainsFunc(listed, func(name string) bool { return name == group || strings.HasPrefix(name, group+"/") })
}

func gone(name string) provision.Outcome {
	return provision.Outcome{Reason: Missing, Message: fmt.Sprintf(
		"%s was here and is not: bring its disks back; if it is gone for good, delete the claims of its volumes and then this StorageNode, and it is made anew", name)}
}

// label names a disk for people. A disk that a class selects has a path, by which the class does so.
func label(p provision.Pool) string { return p.Name + " (" + p.Paths[0] + ")" }
