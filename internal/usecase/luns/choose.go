package luns

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/naming"
	"berth.dev/berth/internal/quantity"
)

// same says whether two names may be of one disk.
func same(a, b v1alpha1.SharedDisk) bool { return naming.Same(named(a), named(b)) }

func named(d v1alpha1.SharedDisk) shared.Disk {
	return shared.Disk{Handle: d.Handle, Identity: provision.Identity(d.Identity)}
}

// diskOf is the disk of a Volume, nil while it has none.
func diskOf(v *v1alpha1.Volume) *v1alpha1.SharedDisk {
	if a := v.Spec.Replication.Attachments; a != nil {
		return a.Disk
	}
	return nil
}

// wish is what a volume asks of a LUN: bytes at least, and at most limit, unless that is zero.
type wish struct {
	poolClass    string
	bytes, limit int64
	// persistent: the target has to keep reservations through its own loss of power.
	persistent bool
}

// Choose returns the LUN that a claim of so many bytes would get now, nil for none, with the reason for people.
// A limit of zero is none. many: several nodes shall write it.
func Choose(poolClass string, bytes, limit int64, many bool, luns []v1alpha1.LUN, volumes []v1alpha1.Volume) (lun *v1alpha1.LUN, shortage string) {
	return choose(wish{poolClass, bytes, limit, many}, luns, volumes)
}

// Why LUNs of the class are not given to a volume.
const (
	bound    = "in use"
	released = "released and not wiped yet (kubectl get luns -o wide)"
	deleting = "being deleted"
	disputed = "named twice (kubectl get luns -o wide)"
	small    = "too small"
	large    = "over the limit"
	forgets  = "without reservations that persist, which ReadWriteMany needs"
)

// refusals in the order in which people are told.
var refusals = []string{bound, released, deleting, disputed, forgets, small, large}

// choose returns the smallest LUN that meets the wish, of equal ones the first by name. Without one it is nil,
// and the shortage says why, for people.
func choose(w wish, luns []v1alpha1.LUN, volumes []v1alpha1.Volume) (best *v1alpha1.LUN, shortage string) {
	refused := map[string]int{}
	total := 0
	for i := range luns {
		l := &luns[i]
		if l.Spec.PoolClass != w.poolClass {
			continue
		}
		total++
		if why := w.refuses(l, luns, volumes); why != "" {
			refused[why]++
		} else if best == nil || order(l, best) < 0 {
			best = l
		}
	}
	if best != nil {
		return best, ""
	}
	return nil, w.shortage(total, refused)
}

func order(a, b *v1alpha1.LUN) int {
	return cmp.Or(a.Spec.Capacity.Cmp(b.Spec.Capacity), cmp.Compare(a.Name, b.Name))
}

// refuses says why the LUN does not meet the wish, empty if it does.
func (w wish) refuses(l *v1alpha1.LUN, luns []v1alpha1.LUN, volumes []v1alpha1.Volume) (why string) {
	size := l.Spec.Capacity.Value()
	switch {
	case over(l):
		return released
	case l.DeletionTimestamp != nil:
		return deleting
	case l.Status.Volume != nil:
		return bound
	case namedBy(l, volumes) != nil, twin(l, luns) != "":
		return disputed
	case w.persistent && !l.Spec.Persistent:
		return forgets
	case size < w.bytes:
		return small
	case w.limit > 0 && size > w.limit:
		return large
	}
	return ""
}

// over says whether the LUN's volume is deleted, and the disk not wiped yet.
func over(l *v1alpha1.LUN) bool {
	return l.Status.State == v1alpha1.LUNReleased || l.Status.State == v1alpha1.LUNWiping
}

// namedBy is the first Volume by name that names the LUN's disk, nil if there is none.
func namedBy(l *v1alpha1.LUN, volumes []v1alpha1.Volume) (first *v1alpha1.Volume) {
	for i := range volumes {
		v := &volumes[i]
		if d := diskOf(v); d != nil && same(*d, l.Spec.Disk) && (first == nil || v.Name < first.Name) {
			first = v
		}
	}
	return first
}

// twin is another LUN that names the same disk, empty if there is none.
func twin(l *v1alpha1.LUN, luns []v1alpha1.LUN) string {
	i := slices.IndexFunc(luns, func(o v1alpha1.LUN) bool { return o.Name != l.Name && same(o.Spec.Disk, l.Spec.Disk) })
	if i < 0 {
		return ""
	}
	return luns[i].Name
}

// shortage is the message where no LUN of the class will do.
func (w wish) shortage(total int, refused map[string]int) string {
	if total == 0 {
		return fmt.Sprintf("no LUN has spec.poolClass %q: declare LUNs of it, or correct the parameter poolClass of the StorageClass", w.poolClass)
	}
	var told []string
	for _, why := range refusals {
		if n := refused[why]; n > 0 {
			told = append(told, fmt.Sprintf("%d %s", n, why))
		}
	}
	return fmt.Sprintf("no LUN of poolClass %q with %s is free; of its %d LUNs: %s", w.poolClass, quantity.Bytes(w.bytes), total, strings.Join(told, ", "))
}
