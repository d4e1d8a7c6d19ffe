package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
)

// class is the name of the PoolClass, the StorageClass and the VolumeSnapshotClass that the suite copies.
const class = "upstream"

// variant is a kind of pools.
type variant struct {
	// pools makes the pools on one of the lab's nodes. It may have been called before.
	pools func(ctx context.Context, lab cluster.Lab, n install.Node) error
	spec  v1alpha1.PoolClassSpec
	// filesystem is that of claims that name none. If it is empty, the class chooses.
	filesystem string
}

var variants = map[string]variant{
	"btrfs": {pools: makeBtrfs, spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerBtrfs, Btrfs: &v1alpha1.BtrfsPools{Filesystems: []string{class}},
	}},
	"thick": {pools: nothing, spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{install.VolumeGroup}},
	}},
	// The disks that are made for it are smaller than all others of a node.
	"devices": {pools: addDisks, spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerDevice, Devices: &v1alpha1.DevicePools{Paths: []string{"/dev/sd*"}, MaxSize: new(resource.MustParse(diskSize))},
	}},
	"zvols": {pools: makeZpool, filesystem: "ext4", spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerZFS, ZFS: &v1alpha1.ZFSPools{Pools: []string{class}},
	}},
	"datasets": {pools: makeZpool, spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerZFS, ZFS: &v1alpha1.ZFSPools{Pools: []string{class}, Recordsize: "16Ki"},
	}},
	"thin": {pools: makeThinPool, spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVMThin,
		LVMThin:     &v1alpha1.LVMThinPools{ThinPools: []string{install.VolumeGroup + "/" + class}, OverprovisionPercent: 500},
	}},
}

// nothing is to be made: the lab's installation has made the volume groups.
func nothing(context.Context, cluster.Lab, install.Node) error { return nil }

func makeThinPool(ctx context.Context, lab cluster.Lab, n install.Node) error {
	if _, err := lab.OnNode(ctx, n.Name, "lvs", install.VolumeGroup+"/"+class); err == nil {
		return nil
	}
	_, err := lab.OnNode(ctx, n.Name, "lvcreate", "--yes", "--type", "thin-pool", "--size", "8g", "--name", class, install.VolumeGroup)
	return err
}

const (
	diskSize = "1Gi"
	// disks is how many volumes a node may have at a time.
	disks = 6
)

// addDisks gives a node empty disks, each for one volume.
func addDisks(ctx context.Context, lab cluster.Lab, n install.Node) error {
	size := resource.MustParse(diskSize)
	sizes, err := lab.OnNode(ctx, n.Name, "lsblk", "--bytes", "--nodeps", "--noheadings", "--output", "SIZE")
	if err != nil {
		return err
	}
	there := 0
	for of := range strings.FieldsSeq(sizes) {
		if of == strconv.FormatInt(size.Value(), 10) {
			there++
		}
	}
	for range disks - there {
		if _, err := addDisk(ctx, lab, n, diskSize); err != nil {
			return err
		}
	}
	return nil
}

// addDisk gives a node an empty disk, and returns its device.
func addDisk(ctx context.Context, lab cluster.Lab, n install.Node, size string) (device string, err error) {
	out, err := lab.Output(ctx, "disk", "add", n.Name, "--size", strings.TrimSuffix(size, "i"))
	if err != nil {
		return "", err
	}
	_, device, _ = strings.Cut(out, " ")
	_, err = lab.OnNode(ctx, n.Name, "udevadm", "wait", "--timeout=60", device)
	return device, err
}

// makeZpool makes the zpool of the class, unless it is there.
func makeZpool(ctx context.Context, lab cluster.Lab, n install.Node) error {
	if _, err := lab.OnNode(ctx, n.Name, "modprobe", "zfs"); err != nil {
		return err
	}
	if _, err := lab.OnNode(ctx, n.Name, "zpool", "list", class); err == nil {
		return nil
	}
	device, err := addDisk(ctx, lab, n, "12Gi")
	if err != nil {
		return err
	}
	_, err = lab.OnNode(ctx, n.Name, "zpool", "create", "-m", "none", class, device)
	return err
}

// makeBtrfs makes the filesystem of the class, unless it is there.
func makeBtrfs(ctx context.Context, lab cluster.Lab, n install.Node) error {
	if _, err := lab.OnNode(ctx, n.Name, "mountpoint", "--quiet", install.BtrfsPath(class)); err == nil {
		return nil
	}
	_, err := install.MakeBtrfs(ctx, lab, n, class)
	return err
}

// makeClasses makes the classes that the suite copies, in the place of those of another kind of pools.
func makeClasses(ctx context.Context, c *cluster.Cluster, v variant) error {
	pc := &v1alpha1.PoolClass{Spec: v.spec}
	pc.Name = class
	pc.Spec.InlineVolumes = &v1alpha1.InlineVolumes{Namespaces: []string{v1alpha1.EveryNamespace}}
	parameters := map[string]string{"poolClass": class}
	if v.filesystem != "" {
		parameters["csi.storage.k8s.io/fstype"] = v.filesystem
	}
	for _, o := range []client.Object{pc, cluster.StorageClass(class, parameters), cluster.SnapshotClass(class)} {
		earlier := o.DeepCopyObject().(client.Object)
		if err := client.IgnoreNotFound(c.Delete(ctx, earlier)); err != nil {
			return fmt.Errorf("deleting the classes of an earlier run: %w", err)
		}
		if err := cluster.AwaitGone(ctx, c, earlier); err != nil {
			return err
		}
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("making the classes: %w", err)
		}
	}
	return nil
}

// awaitPools waits until each node serves the class.
func awaitPools(ctx context.Context, c *cluster.Cluster, nodes []install.Node, of v1alpha1.ProvisionerType) error {
	for _, n := range nodes {
		sn := &v1alpha1.StorageNode{}
		sn.Name = n.Name
		if err := cluster.Await(ctx, c, sn, "with pools of the class", func(sn *v1alpha1.StorageNode) bool {
			return slices.ContainsFunc(sn.Status.Pools, func(p v1alpha1.Pool) bool {
				return p.Health == v1alpha1.PoolHealthy && p.Provisioner == of && slices.Contains(p.Classes, class)
			})
		}); err != nil {
			return err
		}
	}
	return nil
}
