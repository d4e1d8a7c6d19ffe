package wish

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// asked holds the wishes of the classes of a node, by the names of the pools.
type asked struct {
	// made are the pools that are made of disks, and carved those in them.
	made   map[string]*madeAsked
	carved map[string]*carvedAsked
	// named are the pools that are used only where a class names them, and the class of each.
	named map[provision.PoolRef]string
	// whole are the classes that hand out disks.
	whole []v1alpha1.PoolClass
	// refused are the wishes that an older class contradicts.
	refused []Wish
}

type madeAsked struct {
	pool   provision.PoolRef
	class  string
	disks  *v1alpha1.DevicePools
	layout provision.Layout
}

type carvedAsked struct {
	pool      provision.PoolRef
	class     string
	percent   int
	extension provision.Extension
}

// gather takes the classes in from the oldest to the youngest.
func gather(f Facts) asked {
	a := asked{made: map[string]*madeAsked{}, carved: map[string]*carvedAsked{}, named: map[provision.PoolRef]string{}}
	classes := slices.Clone(f.Classes)
	slices.SortFunc(classes, func(x, y v1alpha1.PoolClass) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	for _, c := range classes {
		if !poolclass.Admits(&c, f.Labels) {
			continue
		}
		if c.Spec.Devices != nil {
			a.whole = append(a.whole, c)
			continue
		}
		asks := poolclass.Asks(&c)
		if asks.Disks != nil {
			a.ask(madeAsked{pool: asks.Made, class: c.Name, disks: asks.Disks, layout: asks.Layout})
		}
		for _, pool := range asks.Named {
			a.named[pool] = cmp.Or(a.named[pool], c.Name)
		}
		a.askCarved(c.Name, asks)
	}
	return a
}

// ask asks for a pool that is made of disks.
func (a *asked) ask(m madeAsked) {
	switch older := a.made[m.pool.Name]; {
	case older == nil:
		a.made[m.pool.Name] = &m
	case older.layout != m.layout:
		a.refuse(m.class, m.pool, older.class, "another layout")
	case !equality.Semantic.DeepEqual(older.disks, m.disks):
		a.refuse(m.class, m.pool, older.class, "other disks")
	}
}

// sorted returns the pools that are made of disks by their types and names.
func (a *asked) sorted() []*madeAsked {
	return slices.SortedFunc(maps.Values(a.made), func(x, y *madeAsked) int {
		return cmp.Or(cmp.Compare(x.pool.Type, y.pool.Type), cmp.Compare(x.pool.Name, y.pool.Name))
	})
}

// askCarved asks for the pools that are carved out of others, and that they are extended.
func (a *asked) askCarved(class string, asks poolclass.Asked) {
	if asks.Sized != (provision.PoolRef{}) {
		p := a.askedCarved(class, asks.Sized)
		switch p.percent {
		case 0, asks.SizePercent:
			p.percent = asks.SizePercent
		default:
			a.refuse(class, asks.Sized, p.class, fmt.Sprintf("%d%% of its volume group, not %d%%", asks.SizePercent, p.percent))
		}
	}
	for _, pool := range asks.Extended {
		p := a.askedCarved(class, pool)
		switch e := asks.Extension; p.extension {
		case provision.Extension{}, e:
			p.extension = e
		default:
			a.refuse(class, pool, p.class,
				fmt.Sprintf("that it is extended at %d%% by %d%%, not at %d%% by %d%%", e.At, e.By, p.extension.At, p.extension.By))
		}
	}
}

func (a *asked) askedCarved(class string, pool provision.PoolRef) *carvedAsked {
	if a.carved[pool.Name] == nil {
		a.carved[pool.Name] = &carvedAsked{pool: pool, class: class}
	}
	return a.carved[pool.Name]
}

func (a *asked) refuse(class string, pool provision.PoolRef, older, what string) {
	a.refused = append(a.refused, Wish{
		PoolWish: provision.PoolWish{Pool: pool}, Class: class,
		Decision: refuse(provision.Outcome{Reason: Disagrees, Message: fmt.Sprintf(
			"PoolClass %s asks for %s; PoolClass %s is older, and is heeded: let both say the same", class, what, older)}),
	})
}
