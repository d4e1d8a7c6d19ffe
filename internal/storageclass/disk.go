package storageclass

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/api/v1alpha1"
)

// The parameters of classes of shared disks, beside poolClass, the filesystem and the options of mkfs.
// All but FailoverKey have the names, the defaults and the meaning of Azure Disk CSI Driver V2, in which each
// volume fails over by itself. FailoverKey is called as the field of the Volume that it sets.
const (
	MaxSharesKey   = "maxShares"
	MaxReplicasKey = "maxMountReplicaCount"
	CheckKey       = "enableFileSystemConsistencyCheck"
	YieldKey       = "enableMountReplicaReductionOnDiskPressure"
	FailoverKey    = "automaticFailover"
)

// mostShares is how many nodes a Volume can name.
const mostShares = 8

// diskSettable are the parameters that people may set in a class of shared disks.
var diskSettable = append(slices.Clone(settable), MaxSharesKey, MaxReplicasKey, CheckKey, YieldKey, FailoverKey)

// DiskParameters are the parameters of a StorageClass of shared disks.
type DiskParameters struct {
	Parameters
	// MaxShares is how many nodes a disk can be attached to at once.
	MaxShares int32
	// Factor is how many attachments a volume in use has: its primary's, and one for each replica.
	Factor int32
	// Check has the whole filesystem checked after an unclean end, and not only its journal replayed.
	Check bool
	// Yields has standbys make way for primaries of other volumes that find no slot.
	Yields bool
	// OnDemand has an administrator decide about each failover.
	OnDemand bool
}

// ParseDisk reads the parameters of a class of shared disks, as Parse does those of local volumes. block says
// that the claim asks for a block device.
//
//	parameter                                   values             default
//	maxShares                                   1 to 8             1
//	maxMountReplicaCount                        0 to maxShares-1   maxShares-1
//	enableFileSystemConsistencyCheck            true, false        false; true is not for block devices
//	enableMountReplicaReductionOnDiskPressure   true, false        false
//	automaticFailover                           true, false        true
func ParseDisk(parameters map[string]string, block bool) (DiskParameters, error) {
	own, others := map[string]string{}, map[string]string{}
	for key, value := range parameters {
		if slices.Contains(diskSettable[len(settable):], key) {
			own[key] = value
			continue
		}
		others[key] = value
	}
	var p DiskParameters
	var err error
	if p.Parameters, err = parse(others, diskSettable); err != nil {
		return DiskParameters{}, err
	}
	if p.MaxShares, err = within(own, MaxSharesKey, 1, mostShares, 1); err != nil {
		return DiskParameters{}, err
	}
	replicas, err := within(own, MaxReplicasKey, 0, p.MaxShares-1, p.MaxShares-1)
	if err != nil {
		return DiskParameters{}, err
	}
	p.Factor = 1 + replicas
	if p.Check, err = flag(own, CheckKey, false); err != nil {
		return DiskParameters{}, err
	}
	if p.Yields, err = flag(own, YieldKey, false); err != nil {
		return DiskParameters{}, err
	}
	automatic, err := flag(own, FailoverKey, true)
	if err != nil {
		return DiskParameters{}, err
	}
	p.OnDemand = !automatic
	return p, p.fits(block)
}

// ManyWriters refuses a class whose disks no two nodes can write at once. Standbys are for disks with one writer: the
// node of each pod has an attachment anyway.
func (p *DiskParameters) ManyWriters() error {
	switch {
	case p.MaxShares < 2:
		return Invalid("access mode ReadWriteMany needs parameter %q from 2 on", MaxSharesKey)
	case p.Factor > 1:
		return Invalid("access mode ReadWriteMany needs parameter %q 0: where all nodes write, none stands by", MaxReplicasKey)
	}
	return nil
}

// fits refuses what no shared disk can have.
func (p *DiskParameters) fits(block bool) error {
	switch {
	case p.FSType == v1alpha1.Dataset, p.FSType == v1alpha1.Subvolume:
		return Invalid("filesystem %s is part of a pool: a shared disk has %s or %s", p.FSType, v1alpha1.Ext4, v1alpha1.XFS)
	case block && p.Check:
		return Invalid("parameter %q is for volumeMode Filesystem: Berth does not know what is on a block device", CheckKey)
	case block && p.MkfsOptions != "":
		return Invalid("parameter %q is for volumeMode Filesystem", MkfsOptionsKey)
	case p.MkfsOptions != "":
		return CheckMkfsOptions(cmp.Or(p.FSType, DefaultFSType), p.MkfsOptions)
	}
	return nil
}

// within reads a whole number.
func within(of map[string]string, key string, low, high, otherwise int32) (int32, error) {
	text, given := of[key]
	if !given {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil:
		return 0, Invalid("parameter %q: %q is not a whole number", key, text)
	case int32(n) < low || int32(n) > high:
		return 0, Invalid("parameter %q: %d is not from %d to %d", key, n, low, high)
	}
	return int32(n), nil
}

// flag reads true or false, in any case, as the parents do.
func flag(of map[string]string, key string, otherwise bool) (bool, error) {
	text, given := of[key]
	if !given {
		return otherwise, nil
	}
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "":
		return false, Invalid("parameter %q is empty: use true or false", key)
	default:
		return false, Invalid("parameter %q: %q is neither true nor false", key, text)
	}
}
