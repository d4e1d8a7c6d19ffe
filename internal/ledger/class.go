package ledger

import (
	"errors"
	"fmt"
	"slices"
)

// Class holds the fields of a PoolClass that the ledger needs. Several classes may
// serve one pool, each with a spare of its own.
type Class struct {
	Name string
	// Spare is kept free by volumes of this class, in bytes and in percent of
	// the pool; both count. Volumes of other classes may still use it.
	Spare        int64
	SparePercent int
	// Overprovision is how many percent of a thin pool its volumes may promise
	// together; below 100 means 100.
	Overprovision int
	// MaxFill closes a thin pool for new volumes when its data or its metadata
	// is filled to this many percent; 0 means 100.
	MaxFill int
	// Media that the class asks for; empty means any.
	Media string
	// Layout of a thick volume. The ledger assumes the present layout also for
	// volumes carved under an older one, until their replicas say how much they
	// take.
	Layout Layout
	// InlineNamespaces are those whose pods may have inline volumes of the class; "*"
	// is all of them.
	InlineNamespaces []string
}

// equal is whether two classes of one name say the same.
func (c *Class) equal(d *Class) bool {
	return c.Spare == d.Spare && c.SparePercent == d.SparePercent && c.Overprovision == d.Overprovision &&
		c.MaxFill == d.MaxFill && c.Media == d.Media && c.Layout == d.Layout && slices.Equal(c.InlineNamespaces, d.InlineNamespaces)
}

// admits is whether an owner in a namespace may have volumes of the class.
func (c *Class) admits(o *Owner, namespace string) bool {
	return o.Kind != ByPod || slices.Contains(c.InlineNamespaces, namespace) || slices.Contains(c.InlineNamespaces, "*")
}

// Check says what is wrong with the class.
func (c *Class) Check() error {
	switch {
	case c.Name == "":
		return errors.New("a class has no name")
	case c.Spare < 0:
		return fmt.Errorf("class %q: spare %d is negative", c.Name, c.Spare)
	case c.SparePercent < 0 || c.SparePercent > 100:
		return fmt.Errorf("class %q: a spare of %d percent is not between 0 and 100", c.Name, c.SparePercent)
	case c.Overprovision < 0:
		return fmt.Errorf("class %q: over-provisioning %d is negative", c.Name, c.Overprovision)
	case c.MaxFill < 0 || c.MaxFill > 100:
		return fmt.Errorf("class %q: a fill of %d percent is not between 0 and 100", c.Name, c.MaxFill)
	}
	return c.Layout.check(c.Name)
}

// spare of the class in a pool of this size.
func (c *Class) spare(total int64) int64 { return addUp(c.Spare, percent(total, c.SparePercent)) }

// classes numbers the PoolClasses: charges are many, and a number is small. A name that something is
// charged under has a number whether or not a PoolClass of it was observed, and keeps it for good.
type classes struct {
	ids   map[string]int
	names []string // by id
	known []*Class // by id; nil while there is no PoolClass of the name
}

// id of a name, given to it if need be.
func (c *classes) id(name string) int {
	id, numbered := c.ids[name]
	if !numbered {
		id = len(c.names)
		c.ids[name] = id
		c.names = append(c.names, name)
		c.known = append(c.known, nil)
	}
	return id
}

// find returns the PoolClass of a name and its id; nil if there is none.
func (c *classes) find(name string) (int, *Class) {
	id, numbered := c.ids[name]
	if !numbered {
		return 0, nil
	}
	return id, c.known[id]
}

// noClass stands in for a class that was not observed yet: a linear layout.
var noClass = &Class{}

// class of an id, to reckon with.
func (c *classes) class(id int) *Class {
	if known := c.known[id]; known != nil {
		return known
	}
	return noClass
}

// Layout is how a thick volume is spread over a pool, in the terms of LVM.
// The zero value is a linear volume.
type Layout struct {
	// Stripes that hold data side by side; 0 means 1.
	Stripes int64
	// Mirrors is the number of copies of each stripe; 0 means 1.
	Mirrors int64
	// Parity images beside the stripes: 1 for raid5, 2 for raid6.
	Parity int64
	// Metadata units that each image needs for itself: 1 for LVM's RAID.
	Metadata int64
}

// maxImages is more than the number of disks of any volume group.
const maxImages = 1024

func (l Layout) check(class string) error {
	for name, n := range map[string]int64{"stripes": l.Stripes, "mirrors": l.Mirrors, "parity": l.Parity, "metadata": l.Metadata} {
		if n < 0 || n > maxImages {
			return fmt.Errorf("class %q: %d %s is not between 0 and %d", class, n, name, maxImages)
		}
	}
	return nil
}

// charge is how much of the pool a volume of this size takes: every image holds its
// share of the units, rounded up, and its metadata.
func (l Layout) charge(bytes, unit int64) int64 {
	stripes := max(l.Stripes, 1)
	images := stripes*max(l.Mirrors, 1) + l.Parity
	share := ceilDiv(ceilDiv(bytes, unit), stripes) + l.Metadata
	return multiply(multiply(share, images), unit)
}
