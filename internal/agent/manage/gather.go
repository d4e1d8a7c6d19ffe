package manage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/poolclass"
	"berth.dev/berth/internal/provision"
)

// asked is what the classes of a node ask for, by the names of the pools.
type asked struct {
	groups map[string]*groupAsked
	zpools map[string]*zpoolAsked
	pools  map[string]*poolAsked
	// whole are the classes that hand out disks.
	whole []v1alpha1.PoolClass
	// refused are the wishes that an older class contradicts.
	refused []Wish
}

type groupAsked struct {
	class string
	disks *v1alpha1.DevicePools
}

type poolAsked struct {
	class     string
	percent   int
	extension provision.Extension
}

// gather takes the classes in from the oldest to the youngest.
func gather(f Facts) asked {
	a := asked{groups: map[string]*groupAsked{}, zpools: map[string]*zpoolAsked{}, pools: map[string]*poolAsked{}}
	classes := slices.Clone(f.Classes)
	slices.SortFunc(classes, func(x, y v1alpha1.PoolClass) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	for _, c := range classes {
		if !poolclass.Admits(&c, f.Labels) {
			continue
		}
		switch spec := c.Spec; {
		case spec.LVM != nil && spec.LVM.Create != nil && len(spec.LVM.VolumeGroups) == 1:
			a.askGroup(c.Name, spec.LVM.VolumeGroups[0], &spec.LVM.Create.Disks)
		case spec.LVMThin != nil:
			a.askThin(c.Name, spec.LVMThin)
		case spec.ZFS != nil && spec.ZFS.Create != nil && len(spec.ZFS.Pools) == 1:
			a.askZpool(c.Name, spec.ZFS.Pools[0], spec.ZFS.Create)
		case spec.Devices != nil:
			a.whole = append(a.whole, c)
		}
	}
	return a
}

func (a *asked) askGroup(class, name string, disks *v1alpha1.DevicePools) {
	switch g := a.groups[name]; {
	case g == nil:
		a.groups[name] = &groupAsked{class, disks}
	case !equality.Semantic.DeepEqual(g.disks, disks):
		a.refuse(class, provision.PoolRef{Type: provision.LVM, Name: name}, g.class, "other disks")
	}
}

func (a *asked) askThin(class string, spec *v1alpha1.LVMThinPools) {
	if create := spec.Create; create != nil && len(spec.ThinPools) == 1 {
		name := spec.ThinPools[0]
		if group, _, _ := strings.Cut(name, "/"); create.Disks != nil {
			a.askGroup(class, group, create.Disks)
		}
		p := a.thin(class, name)
		switch percent := int(create.SizePercent); p.percent {
		case 0, percent:
			p.percent = percent
		default:
			a.refuse(class, provision.PoolRef{Type: provision.LVMThin, Name: name}, p.class, fmt.Sprintf("%d%% of its volume group, not %d%%", percent, p.percent))
		}
	}
	if spec.AutoExtend == nil {
		return
	}
	for _, name := range spec.ThinPools {
		p := a.thin(class, name)
		switch e := (provision.Extension{At: int(spec.AutoExtend.AtPercent), By: int(spec.AutoExtend.ByPercent)}); p.extension {
		case provision.Extension{}, e:
			p.extension = e
		default:
			a.refuse(class, provision.PoolRef{Type: provision.LVMThin, Name: name}, p.class,
				fmt.Sprintf("that it is extended at %d%% by %d%%, not at %d%% by %d%%", e.At, e.By, p.extension.At, p.extension.By))
		}
	}
}

func (a *asked) thin(class, name string) *poolAsked {
	if a.pools[name] == nil {
		a.pools[name] = &poolAsked{class: class}
	}
	return a.pools[name]
}

func (a *asked) refuse(class string, pool provision.PoolRef, older, what string) {
	a.refused = append(a.refused, Wish{
		PoolWish: provision.PoolWish{Pool: pool}, Class: class,
		Refused: provision.Outcome{Reason: Disagrees, Message: fmt.Sprintf(
			"PoolClass %s asks for %s; PoolClass %s is older, and is heeded: let both say the same", class, what, older)},
	})
}
