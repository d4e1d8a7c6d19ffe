//go:build e2e && thorough

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/test/cluster"
)

// storageClass makes a StorageClass over the lab's disks for one test.
func (p pools) storageClass(name string, change func(*storagev1.StorageClass)) string {
	p.Helper()
	sc := cluster.StorageClass(name+"-"+p.namespace, map[string]string{"poolClass": class})
	change(sc)
	p.create(sc)
	p.Cleanup(func() {
		if err := p.Delete(p.ctx, sc); err != nil {
			p.Error(err)
		}
	})
	return sc.Name
}

// reading has a pod mount its first volume read-only.
func reading(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true }

// inGroup has a pod run as a user without privileges, and gives its volumes to the pod's group.
func inGroup(p *corev1.Pod) {
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1000)), FSGroup: new(int64(2000))}
}

func ofOnePod(c *corev1.PersistentVolumeClaim) {
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
}

func TestAccessOfAPodsGroupThatWritesAndOfPodsThatRead(t *testing.T) {
	t.Parallel()
	b := begin(t)
	class := pools{b}.storageClass("shared", func(sc *storagev1.StorageClass) {
		sc.Parameters["csi.storage.k8s.io/fstype"], sc.Parameters["mkfsOptions"] = "ext4", "-i 65536"
		sc.MountOptions = []string{"noatime"}
	})
	claim := b.claim("data", class, "1Gi")
	writer := b.run("writer", claim, inGroup)
	b.sh(writer, "echo shared > /data/file && sync")
	if got := b.sh(writer, "stat -c %g /data/file"); got != "2000" {
		t.Errorf("the file is of group %s", got)
	}
	if got := b.sh(writer, "stat -f -c %c /data"); got != "16384" {
		t.Errorf("the filesystem has %s inodes", got)
	}
	for _, name := range []string{"reader1", "reader2"} {
		pod := b.run(name, claim, inGroup, reading)
		b.reads(pod, "shared")
		if got := b.sh(pod, "(echo changed > /data/file) 2>/dev/null || echo refused"); got != "refused" {
			t.Errorf("%s writes: %q", name, got)
		}
		if got := b.sh(pod, "awk '$2==\"/data\" {print $4}' /proc/mounts"); !strings.HasPrefix(got, "ro,") || !strings.Contains(got, "noatime") {
			t.Errorf("mounted with %s", got)
		}
	}
	b.sh(writer, "echo again > /data/file")
}

func TestAccessOfASecondPodIsHeldBackUntilTheFirstIsGone(t *testing.T) {
	t.Parallel()
	b := begin(t)
	claim := b.claim("data", classExt4, "64Mi", ofOnePod)
	first := b.run("first", claim)
	second := cluster.Pod(b.namespace, "second", []*corev1.PersistentVolumeClaim{claim})
	b.create(second)
	b.must(cluster.Await(b.within(), b.Cluster, second, "held back", func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "ReadWriteOncePod") {
				return true
			}
		}
		return false
	}), "the second pod")
	b.remove(first)
	b.awaitRunning(second)
}

func TestAccessThatNoVolumeCanGiveIsToldOnTheClaim(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*storagev1.StorageClass)
		modes  cluster.ClaimOption
		told   string
	}{
		"mkfs":  {change: func(sc *storagev1.StorageClass) { sc.Parameters["mkfsOptions"] = "-U clear" }, told: `"-U" is not supported for ext4`},
		"mount": {change: func(sc *storagev1.StorageClass) { sc.MountOptions = []string{"noload"} }, told: `"noload" is not supported for ext4`},
		"modes": {change: func(*storagev1.StorageClass) {}, told: "the volume lives on one node",
			modes: func(c *corev1.PersistentVolumeClaim) {
				c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := begin(t)
			var options []cluster.ClaimOption
			if tc.modes != nil {
				options = append(options, tc.modes)
			}
			claim := b.claim("data", pools{b}.storageClass(name, tc.change), "64Mi", options...)
			b.create(cluster.Pod(b.namespace, "waits", []*corev1.PersistentVolumeClaim{claim}))
			b.awaitEvent(claim, tc.told)
			if made := b.volumes(b.ctx); len(made) != 0 {
				t.Errorf("a volume was made: %s", b.picture(&made[0]))
			}
		})
	}
}

func TestAccessToAnEphemeralVolumeEndsWithItsPod(t *testing.T) {
	t.Parallel()
	b := begin(t)
	template := cluster.Claim(b.namespace, "", classExt4, "64Mi").Spec
	pod := cluster.Pod(b.namespace, "builder", nil, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: template},
		}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: cluster.MountPath}}
	})
	b.create(pod)
	b.awaitRunning(pod)
	b.sh(pod, "echo scratch > /data/file && sync")
	b.reads(pod, "scratch")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "builder-scratch"}}
	volume := b.volumeOf(claim)
	b.remove(pod)
	b.must(cluster.AwaitGone(b.within(), b.Cluster, volume), "deleting the volume")
}
