package wish

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// asked holds the wishes of the classes of a node, by the names of the pools.
type asked struct {
	// made are the pools that are made of disks, and thin those in them.
	made map[string]*madeAsked
	thin map[string]*thinAsked
	// named are the pools that are used only where a class names them, and the class of each.
	named map[provision.PoolRef]string
	// whole are the classes that hand out disks.
	whole []v1alpha1.PoolClass
	// refused are the wishes that an older class contradicts.
	refused []Wish
}

type madeAsked struct {
	pool  provision.PoolRef
	class string
	disks *v1alpha1.DevicePools
	// zpool says how to make a zpool; zero for other pools.
	zpool provision.Zpool
}

type thinAsked struct {
	class     string
	percent   int
	extension provision.Extension
}

// gather takes the classes in from the oldest to the youngest.
func gather(f Facts) asked {
	a := asked{made: map[string]*madeAsked{}, thin: map[string]*thinAsked{}, named: map[provision.PoolRef]string{}}
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
		case spec.Btrfs != nil && spec.Btrfs.Create != nil && len(spec.Btrfs.Filesystems) == 1:
			a.ask(madeAsked{
				pool:  provision.PoolRef{Type: provision.Btrfs, Name: provision.BtrfsPrefix + spec.Btrfs.Filesystems[0]},
				class: c.Name, disks: &spec.Btrfs.Create.Disks,
			})
		case spec.Btrfs != nil:
			a.name(c.Name, spec.Btrfs.Filesystems)
		case spec.Devices != nil:
			a.whole = append(a.whole, c)
		}
	}
	return a
}

// name notes the filesystems that a class names, and does not ask Berth to make.
func (a *asked) name(class string, filesystems []string) {
	for _, name := range filesystems {
		pool := provision.PoolRef{Type: provision.Btrfs, Name: provision.BtrfsPrefix + name}
		a.named[pool] = cmp.Or(a.named[pool], class)
	}
}

// ask asks for a pool that is made of disks.
func (a *asked) ask(m madeAsked) {
	switch older := a.made[m.pool.Name]; {
	case older == nil:
		a.made[m.pool.Name] = &m
	case older.zpool != m.zpool:
		a.refuse(m.class, m.pool, older.class, "another layout")
	case !equality.Semantic.DeepEqual(older.disks, m.disks):
		a.refuse(m.class, m.pool, older.class, "other disks")
	}
}

func (a *asked) askGroup(class, name string, disks *v1alpha1.DevicePools) {
	a.ask(madeAsked{pool: provision.PoolRef{Type: provision.LVM, Name: name}, class: class, disks: disks})
}

// sorted returns the pools that are made of disks by their types and names.
func (a *asked) sorted() []*madeAsked {
	return slices.SortedFunc(maps.Values(a.made), func(x, y *madeAsked) int {
		return cmp.Or(cmp.Compare(x.pool.Type, y.pool.Type), cmp.Compare(x.pool.Name, y.pool.Name))
	})
}

func (a *asked) askThin(class string, spec *v1alpha1.LVMThinPools) {
	if create := spec.Create; create != nil && len(spec.ThinPools) == 1 {
		name := spec.ThinPools[0]
		if group, _, _ := strings.Cut(name, "/"); create.Disks != nil {
			a.askGroup(class, group, create.Disks)
		}
		p := a.askedThin(class, name)
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
		p := a.askedThin(class, name)
		switch e := (provision.Extension{At: int(spec.AutoExtend.AtPercent), By: int(spec.AutoExtend.ByPercent)}); p.extension {
		case provision.Extension{}, e:
			p.extension = e
		default:
			a.refuse(class, provision.PoolRef{Type: provision.LVMThin, Name: name}, p.class,
				fmt.Sprintf("that it is extended at %d%% by %d%%, not at %d%% by %d%%", e.At, e.By, p.extension.At, p.extension.By))
		}
	}
}

func (a *asked) askedThin(class, name string) *thinAsked {
	if a.thin[name] == nil {
		a.thin[name] = &thinAsked{class: class}
	}
	return a.thin[name]
}

func (a *asked) refuse(class string, pool provision.PoolRef, older, what string) {
	a.refused = append(a.refused, Wish{
		PoolWish: provision.PoolWish{Pool: pool}, Class: class,
		Decision: refuse(provision.Outcome{Reason: Disagrees, Message: fmt.Sprintf(
			"PoolClass %s asks for %s; PoolClass %s is older, and is heeded: let both say the same", class, what, older)}),
	})
}
