package manage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/poolclass"
	"berth.dev/berth/internal/provision"
)

// The reasons that wishes are refused for, beside those of provision.
const (
	// Disagrees: an older class asks something else of the pool.
	Disagrees provision.Reason = "Disagrees"
	// Missing: the pool was here, and is not.
	Missing provision.Reason = "Missing"
	// Contested: a disk matches several pools, and is left alone.
	Contested provision.Reason = "Contested"
	// Failing: what was tried failed, and is tried again.
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

// Wish is what a class asks of a pool on a node.
type Wish struct {
	provision.PoolWish
	// Class that asks.
	Class string
	// Refused says why the wish is not heeded at all, if it has a reason.
	Refused provision.Outcome
	// Remarks are about disks that match and are not taken.
	Remarks []string
	// contested says that a remark is about a disk that several pools could have.
	contested bool
	// lost says that the pool was here and is not. It is asked for all the same, without
	// disks: it may be on disks that are.
	lost bool
}

// Wishes are what the classes ask of a node, a volume group before the thin pools in it.
func Wishes(f Facts) []Wish {
	a := gather(f)
	var wishes []Wish
	for _, name := range slices.Sorted(maps.Keys(a.groups)) {
		wishes = append(wishes, a.group(f, name))
	}
	for _, name := range slices.Sorted(maps.Keys(a.zpools)) {
		wishes = append(wishes, a.zpool(f, name))
	}
	for _, name := range slices.Sorted(maps.Keys(a.pools)) {
		wishes = append(wishes, a.pool(f, name))
	}
	return append(wishes, a.refused...)
}

// Names are the pools that the classes ask Berth to make on a node.
func Names(classes []v1alpha1.PoolClass, labels map[string]string) []string {
	a := gather(Facts{Classes: classes, Labels: labels})
	names := slices.AppendSeq(slices.Collect(maps.Keys(a.groups)), maps.Keys(a.zpools))
	for name, p := range a.pools {
		if p.percent > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// group asks for a volume group of all the disks that match, and are empty and nobody
// else's.
func (a asked) group(f Facts, name string) Wish {
	g := a.groups[name]
	w := Wish{PoolWish: provision.PoolWish{Pool: provision.PoolRef{Type: provision.LVM, Name: name}}, Class: g.class}
	there := has(f.Pools, w.Pool)
	if !there && lists(f.Listed, name) {
		w.Refused = gone(name)
		return w
	}
	for _, p := range a.empty(f, &w, g.disks, there) {
		w.Disks = append(w.Disks, p.Name)
	}
	slices.Sort(w.Disks)
	w.Disks = w.Disks[:min(len(w.Disks), provision.MaxDisks)]
	return w
}

// empty are the disks that match, and are empty and nobody else's; of others it remarks
// why they are not taken.
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

// rivals are the others that a disk could be for: other volume groups and zpools, and
// classes that hand out disks.
func (a asked) rivals(disk provision.Pool, pool string) (others []string) {
	for _, name := range slices.Sorted(maps.Keys(a.groups)) {
		if name != pool && poolclass.Selects(a.groups[name].disks, disk) {
			others = append(others, "volume group "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.zpools)) {
		if name != pool && poolclass.Selects(a.zpools[name].disks, disk) {
			others = append(others, "zpool "+strings.TrimPrefix(name, provision.ZFSPrefix))
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
	p := a.pools[name]
	w := Wish{Class: p.class, PoolWish: provision.PoolWish{
		Pool: provision.PoolRef{Type: provision.LVMThin, Name: name}, SizePercent: p.percent, Extension: p.extension,
	}}
	if !has(f.Pools, w.Pool) && slices.Contains(f.Listed, name) {
		w.Refused = gone(name)
	}
	return w
}

func has(pools []provision.Pool, ref provision.PoolRef) bool {
	return slices.ContainsFunc(pools, func(p provision.Pool) bool { return p.PoolRef == ref })
}

// lists says whether a volume group or anything in it is listed.
func lists(listed []string, group string) bool {
	return slices.ContainsFunc(listed, func(name string) bool { return name == group || strings.HasPrefix(name, group+"/") })
}

func gone(name string) provision.Outcome {
	return provision.Outcome{Reason: Missing, Message: fmt.Sprintf(
		"%s was here and is not: bring its disks back; if it is gone for good, delete the claims of its volumes and then this StorageNode, and it is made anew", name)}
}

// label names a disk for people.
func label(p provision.Pool) string {
	if len(p.Paths) == 0 {
		return p.Name
	}
	return p.Name + " (" + p.Paths[0] + ")"
}
