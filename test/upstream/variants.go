package main

import (
	"context"
	"fmt"
	"slices"

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
}

var variants = map[string]variant{
	"btrfs": {makeBtrfs, v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerBtrfs, Btrfs: &v1alpha1.BtrfsPools{Filesystems: []string{class}},
	}},
	"thick": {nothing, v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{install.VolumeGroup}},
	}},
	"thin": {makeThinPool, v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVMThin,
		LVMThin:     &v1alpha1.LVMThinPools{ThinPools: []string{install.VolumeGroup + "/" + class}, OverprovisionPercent: 500},
	}},
}

// nothing is to be made: the lab's installation has made the volume groups.
func nothing(context.Context, cluster.Lab, install.Node) error { return nil }

func makeThinPool(ctx context.Context, lab cluster.Lab, n install.Node) error {
	script := "lvs " + install.VolumeGroup + "/" + class + " 2>/dev/null || lvcreate --yes --type thin-pool --size 8g --name " + class + " " + install.VolumeGroup
	_, err := lab.OnNode(ctx, n.Name, "sh", "-c", script)
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

// makeClasses makes the classes that the suite copies.
func makeClasses(ctx context.Context, c *cluster.Cluster, spec v1alpha1.PoolClassSpec) error {
	pc := &v1alpha1.PoolClass{Spec: spec}
	pc.Name = class
	pc.Spec.InlineVolumes = &v1alpha1.InlineVolumes{Namespaces: []string{v1alpha1.EveryNamespace}}
	for _, o := range []client.Object{pc, cluster.StorageClass(class, map[string]string{"poolClass": class}), cluster.SnapshotClass(class)} {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, o)); err != nil {
			return fmt.Errorf("making the classes: %w", err)
		}
	}
	return nil
}

// awaitPools waits until each node serves the class.
func awaitPools(ctx context.Context, c *cluster.Cluster, nodes []install.Node) error {
	for _, n := range nodes {
		sn := &v1alpha1.StorageNode{}
		sn.Name = n.Name
		if err := cluster.Await(ctx, c, sn, "with pools of the class", func(sn *v1alpha1.StorageNode) bool {
			return slices.ContainsFunc(sn.Status.Pools, func(p v1alpha1.Pool) bool {
				return p.Health == v1alpha1.PoolHealthy && slices.Contains(p.Classes, class)
			})
		}); err != nil {
			return err
		}
	}
	return nil
}
