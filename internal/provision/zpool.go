package provision

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Zpool says how to make a zpool of disks.
type Zpool struct {
	// Layout of every vdev.
	Layout ZpoolLayout
	// Width is how many disks a vdev has. The pool takes whole vdevs only.
	Width int
	// Ashift is the binary logarithm of the smallest write in bytes.
	Ashift int
}

// ZpoolLayout is the redundancy that keeps the data of a vdev when disks fail.
type ZpoolLayout string

// The layouts of zpools.
const (
	ZpoolStripe ZpoolLayout = "Stripe"
	ZpoolMirror ZpoolLayout = "Mirror"
	ZpoolRaidZ1 ZpoolLayout = "RaidZ1"
	ZpoolRaidZ2 ZpoolLayout = "RaidZ2"
)

// The bounds of Width and Ashift.
const (
	MaxZpoolWidth  = 16
	MinZpoolAshift = 12
	MaxZpoolAshift = 16
)

var (
	// zpoolName matches the names that ZFS allows for a zpool. reservedZpoolName matches those
	// among them that are reserved: ZFS refuses its own only after it has labelled the disks.
	zpoolName         = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,99}$`)
	diskNode          = regexp.MustCompile(`^/dev/[A-Za-z0-9_!-]+$`)
	reservedZpoolName = regexp.MustCompile(`^(mirror|raidz|draid|spare|c[0-9]|log$|berth-(new|trash)$)`)
)

// Check returns ErrInvalid for a description that no zpool can have.
func (z Zpool) Check() error {
	least, most := z.Layout.widths()
	if z.Width < least || z.Width > most || most == 0 {
		return fmt.Errorf("%w: a vdev of layout %q does not have %d disks", ErrInvalid, z.Layout, z.Width)
	}
	if z.Ashift < MinZpoolAshift || z.Ashift > MaxZpoolAshift {
		return fmt.Errorf("%w: an ashift of %d is not between %d and %d", ErrInvalid, z.Ashift, MinZpoolAshift, MaxZpoolAshift)
	}
	return nil
}

func (l ZpoolLayout) widths() (least, most int) {
	switch l {
	case ZpoolStripe:
		return 1, 1
	case ZpoolMirror:
		return 2, 2
	case ZpoolRaidZ1:
		return 3, MaxZpoolWidth
	case ZpoolRaidZ2:
		return 4, MaxZpoolWidth
	}
	return 0, 0
}

// checkZpool is the part of Check for a wish for a zpool.
func (w PoolWish) checkZpool() error {
	name := strings.TrimPrefix(w.Pool.Name, ZFSPrefix)
	if !zpoolName.MatchString(name) || reservedZpoolName.MatchString(name) {
		return fmt.Errorf("%w: ZFS makes no zpool of name %q", ErrInvalid, name)
	}
	if err := w.Zpool.Check(); err != nil {
		return err
	}
	if i := slices.IndexFunc(w.Search, func(node string) bool { return !diskNode.MatchString(node) }); i >= 0 || len(w.Search) > MaxDisks {
		return fmt.Errorf("%w: a zpool is searched for on at most %d disks: %q", ErrInvalid, MaxDisks, w.Search[max(i, 0)])
	}
	if len(w.Disks)%w.Zpool.Width != 0 {
		return fmt.Errorf("%w: %d disks are no whole vdevs of %d", ErrInvalid, len(w.Disks), w.Zpool.Width)
	}
	for vdev := range slices.Chunk(w.Disks, w.Zpool.Width) {
		if sorted := slices.Sorted(slices.Values(vdev)); len(slices.Compact(sorted)) != len(vdev) {
			return fmt.Errorf("%w: a vdev of %v has a disk twice", ErrInvalid, vdev)
		}
	}
	return nil
}
