//go:build e2e

package e2e

import (
	"slices"
	"testing"
	"time"

	"berth.dev/berth/test/cluster"
)

func TestAClaimBecomesALogicalVolumeThatLivesAndDiesWithIt(t *testing.T) {
	t.Parallel()
	livesAndDies(begin(t), "ext4", classExt4)
}

func livesAndDies(b *bench, fs, class string) {
	b.Helper()
	claim := b.claim("data", class, "1Gi")
	pod := b.run("first", claim)
	node := pod.Spec.NodeName
	volume := b.volumeOf(claim)
	if got := volume.Spec.Replicas[0].Node; got != node {
		b.Errorf("the replica is on %s, the pod on %s", got, node)
	}
	if lvs := b.logicalVolumes(node); !slices.Contains(lvs, volume.Name) {
		b.Errorf("no logical volume %s among %v", volume.Name, lvs)
	}
	if got := b.sh(pod, "awk '$2==\"/data\" {print $3}' /proc/mounts"); got != fs {
		b.Errorf("mounted a %s, want %s", got, fs)
	}

	b.sh(pod, "echo kept > /data/file && sync")
	b.remove(pod)
	second := b.run("second", claim)
	if second.Spec.NodeName != node {
		b.Errorf("the second pod is on %s, the volume on %s", second.Spec.NodeName, node)
	}
	if got := b.sh(second, "cat /data/file"); got != "kept" {
		b.Errorf("read %q, wrote %q", got, "kept")
	}

	b.remove(second)
	b.remove(claim)
	b.must(cluster.AwaitGone(b.within(), b.Cluster, volume), "deleting the volume")
	wiped(b, node, volume.Name)
}

// wiped waits until a logical volume is gone. After its volume is deleted, the node first
// overwrites it.
func wiped(b *bench, node, name string) {
	b.Helper()
	ctx := b.within()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for slices.Contains(b.logicalVolumes(node), name) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.Fatalf("logical volume %s outlived its claim", name)
		}
	}
}

func TestAVolumeGrowsWhileItIsInUse(t *testing.T) {
	t.Parallel()
	grows(begin(t), classXFS)
}

func grows(b *bench, class string) {
	b.Helper()
	claim := b.claim("data", class, "1Gi")
	pod := b.run("grower", claim)
	b.sh(pod, "echo kept > /data/file")

	b.resize(claim, "2Gi")
	b.must(cluster.Await(b.within(), b.Cluster, claim, "2Gi", cluster.HasCapacity("2Gi")), "growing")
	if mib := b.sh(pod, "df -Pm /data | awk 'NR==2 {print ($2 > 1700)}'"); mib != "1" {
		b.Errorf("the filesystem did not grow: %s", b.sh(pod, "df -Pm /data"))
	}
	if got := b.sh(pod, "cat /data/file"); got != "kept" {
		b.Errorf("read %q after growing", got)
	}
}

func TestARawBlockVolumeIsADeviceThatKeepsItsBytesAndGrows(t *testing.T) {
	t.Parallel()
	b := begin(t)
	claim := b.claim("disk", classExt4, "64Mi", cluster.Raw)
	pod := b.run("first", claim)
	b.sh(pod, "printf kept | dd of=/dev/volume bs=4 seek=1000 conv=notrunc,fsync 2>/dev/null")

	b.resize(claim, "128Mi")
	b.must(cluster.Await(b.within(), b.Cluster, claim, "128Mi", cluster.HasCapacity("128Mi")), "growing")
	if got := b.sh(pod, "blockdev --getsize64 /dev/volume"); got != "134217728" {
		b.Errorf("the device has %s bytes", got)
	}

	b.remove(pod)
	second := b.run("second", claim)
	if got := b.sh(second, "dd if=/dev/volume bs=4 skip=1000 count=1 2>/dev/null"); got != "kept" {
		b.Errorf("read %q", got)
	}
}
