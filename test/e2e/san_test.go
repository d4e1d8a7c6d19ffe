//go:build e2e && thorough

package e2e

import (
	"bufio"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// shares is how many nodes the disk of the test is attached to: all of the lab's.
const shares = 3

// san is a bench with a logical unit at the lab's target, and with pods that write to it.
type san struct {
	*bench
	disk v1alpha1.SharedDisk
	// persistent says whether the volume counts on reservations that outlive a restart of the target.
	persistent bool
}

// newSAN makes a logical unit, and starts the nodes' initiators.
func newSAN(b *bench) *san {
	b.Helper()
	b.lab("san", "up", "--kind", "lio", "--persist", "--luns", "1", "--size", "256M")
	b.Cleanup(func() { b.lab("san", "down") })
	for _, node := range []string{"node1", "node2", "node3"} {
		b.onNode(node, "sh", "-c", initiator)
	}
	return &san{bench: b, persistent: true, disk: v1alpha1.SharedDisk{
		Handle:   "iscsi://10.77.0.2/iqn.2026-01.dev.berth.lab:san/1",
		Identity: "naa.6001405beab000100000000000000000",
	}}
}

// initiator starts the service that a node of the lab does not start by itself.
const initiator = "pidof iscsid >/dev/null || iscsid; "

// backing is the file of the logical unit on this machine.
func (s *san) backing() string {
	s.Helper()
	fields := strings.Fields(s.lab("san", "up", "--kind", "lio", "--persist", "--luns", "1", "--size", "256M"))
	if len(fields) != 2 {
		s.Fatalf("the lab names no file of the logical unit: %q", fields)
	}
	return fields[1]
}

// attached asks a node's kernel whether it has the disk. A node that boots does not answer yet.
func (s *san) attached(node string) bool {
	names, err := s.Lab.OnNode(s.within(), node, "sh", "-c", initiator+"cat /sys/block/*/device/wwid 2>/dev/null; true")
	return err == nil && slices.Contains(strings.Fields(names), s.disk.Identity)
}

// volume makes a Volume of the disk, as an administrator does, and a claim for it.
func (s *san) volume(claim string, opts ...cluster.ClaimOption) (*v1alpha1.Volume, *corev1.PersistentVolumeClaim) {
	s.Helper()
	const size = "256Mi"
	c := cluster.Claim(s.namespace, claim, "", size, opts...)
	mode, fs := v1alpha1.Filesystem, v1alpha1.Ext4
	if isRaw(c) {
		mode, fs = v1alpha1.Block, ""
	}
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeName(s.namespace + "-" + claim)},
		Spec: v1alpha1.VolumeSpec{
			Driver: v1alpha1.DiskDriverName, Capacity: resource.MustParse(size), VolumeMode: mode, FSType: fs,
			PoolClass: "none", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
			Replication: v1alpha1.Replication{
				Factor: shares, Kind: v1alpha1.ReplicationAttachments, Failover: &v1alpha1.Failover{Automatic: true},
				Attachments: &v1alpha1.Attachments{MaxShares: shares, Persistent: s.persistent, Disk: s.disk.DeepCopy()},
			},
		},
	}
	c.Spec.VolumeName = v.Name
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}, AccessModes: c.Spec.AccessModes, VolumeMode: c.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: s.namespace, Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: v1alpha1.DiskDriverName, VolumeHandle: v.Name, FSType: string(fs),
			}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: v1alpha1.VolumeLabelPrefix + v.Name, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"},
				}},
			}}}},
		},
	}
	s.create(v, pv, c)
	s.Cleanup(func() {
		s.remove(c)
		s.remove(pv)
		s.remove(v) // once the disk is attached to no node
	})
	return v, c
}

// awaitVolume waits until a volume with an owner is as it should be.
func (s *san) awaitVolume(v *v1alpha1.Volume, what string, cond func(*v1alpha1.Volume) bool) {
	s.Helper()
	err := cluster.Await(s.within(), s.Cluster, v, what, func(v *v1alpha1.Volume) bool { return v.Status.Ownership != nil && cond(v) })
	if err != nil {
		s.Fatalf("%v\n%s", err, s.picture(v))
	}
}

// standbysAreReady tells whether a volume has an owner, and a ready attachment on each node.
func standbysAreReady(v *v1alpha1.Volume) bool {
	o := v.Status.Ownership
	if o == nil || o.Primary.Phase != v1alpha1.PrimaryActive {
		return false
	}
	ready := 0
	for _, r := range o.Replicas {
		if r.State == v1alpha1.OwnedReady {
			ready++
		}
	}
	return ready == shares
}

// writer makes a StatefulSet of one pod, which writes into the claim data-NAME-0.
func (s *san) writer(name string, claim *corev1.PersistentVolumeClaim) {
	s.Helper()
	set := statefulSet(name, claim, func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sh", "-c", counting} })
	s.create(set)
	s.Cleanup(func() { s.remove(set) })
}

// counting appends a number each time to a file, has it reach the disk, and only then says so.
const counting = `n=$(tail -n 1 /data/log 2>/dev/null); n=${n:-0}
trap 'exit 0' TERM
while :; do
  n=$((n+1))
  echo $n | dd of=/data/log oflag=append conv=notrunc,fsync 2>/dev/null || exit 1
  echo $n
done`

// acknowledges reads what a pod says, and keeps the last number that it acknowledged.
func (s *san) acknowledges(p *corev1.Pod) *atomic.Int64 {
	s.Helper()
	set, err := kubernetes.NewForConfig(s.Config)
	s.must(err, "connecting")
	stream, err := set.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Follow: true}).Stream(s.ctx)
	s.must(err, "following the pod's log")
	var last atomic.Int64
	go func() {
		lines := bufio.NewScanner(stream)
		for lines.Scan() {
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				last.Store(n)
			}
		}
	}()
	s.Cleanup(func() { _ = stream.Close() })
	return &last
}

// isComplete checks that the volume has every record that was acknowledged, in order.
func (s *san) isComplete(pod *corev1.Pod, acknowledged int64) {
	s.Helper()
	records := strings.Fields(s.sh(pod, "cat /data/log"))
	for i, record := range records {
		if want := strconv.Itoa(i + 1); record != want {
			s.Fatalf("record %d is %q", i+1, record)
		}
	}
	if int64(len(records)) < acknowledged {
		s.Fatalf("of %d acknowledged records %d are left", acknowledged, len(records))
	}
}
