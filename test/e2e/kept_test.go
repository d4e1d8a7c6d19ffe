//go:build e2e && thorough

package e2e

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/test/cluster"
)

// kept is a volume whose bytes must stay. It has a payload, which is written in one go and fills
// a raw device of sixteen mebibytes. A filesystem also has a log that a pod keeps writing.
type kept struct {
	*bench
	claim *corev1.PersistentVolumeClaim
	pod   *corev1.Pod // the last pod that used it
	// name of the Volume, and of the logical volume in the group.
	name, group string
	sum         string // of the payload
	lines       int    // of the log that were written out, at least
}

// keep writes a volume's payload, through a pod that goes on writing its log.
func keep(b *bench, claim *corev1.PersistentVolumeClaim, opts ...cluster.PodOption) *kept {
	b.Helper()
	k := &kept{bench: b, claim: claim}
	k.pod = b.run(claim.Name, claim, append(opts, writing(claim), cluster.OnNode(thinNode), cluster.Steadfast)...)
	k.name = b.volumeOf(claim).Name
	k.group = groupOf(b, k.name)
	k.fill(16)
	return k
}

// fill writes the payload.
func (k *kept) fill(mebibytes int) {
	k.Helper()
	k.sh(k.pod, fmt.Sprintf("dd if=/dev/urandom of=%s bs=1M count=%d conv=fsync,notrunc 2>/dev/null", k.path(), mebibytes))
	k.sum = k.checksum()
}

// path of the payload in a pod.
func (k *kept) path() string {
	if isRaw(k.claim) {
		return cluster.DevicePath
	}
	return cluster.MountPath + "/payload"
}

// writing has a pod append to a log for as long as it runs, one number after the other.
func writing(c *corev1.PersistentVolumeClaim) cluster.PodOption {
	return func(p *corev1.Pod) {
		if !isRaw(c) {
			p.Spec.Containers[0].Command = []string{"sh", "-c", `trap 'exit 0' TERM
touch /data/log; i=$(wc -l < /data/log)
while :; do i=$((i+1)); echo $i >> /data/log; sync; sleep 1 & wait $!; done`}
		}
	}
}

// checksum returns the checksum of the payload as the pod reads it.
func (k *kept) checksum() string {
	k.Helper()
	sum, _, _ := strings.Cut(k.sh(k.pod, "sha256sum < "+k.path()), " ")
	return sum
}

// readsAll has the pod read all of the volume, and notes how far its log has come.
func (k *kept) readsAll() {
	k.Helper()
	if got := k.checksum(); got != k.sum {
		k.Errorf("%s reads a payload with checksum %s, written was %s", k.pod.Name, got, k.sum)
	}
	if isRaw(k.claim) {
		return
	}
	var torn, lines int
	_, err := fmt.Sscan(k.sh(k.pod, `awk '$1 != NR {torn = 1} END {print torn + 0, NR}' /data/log`), &torn, &lines)
	k.must(err, "reading a log")
	if torn != 0 || lines < k.lines {
		k.Errorf("%s reads a log of %d lines (torn: %d), written were %d", k.pod.Name, lines, torn, k.lines)
	}
	k.lines = lines
}

// groupOf returns the volume group that has a logical volume; empty if none has it.
func groupOf(b *bench, name string) string {
	b.Helper()
	return b.onNode(thinNode, "lvs", "--noheadings", "-o", "vg_name", "--select", "lv_name="+name)
}

// onDisk returns an error unless the node has the payload. It reads the device and
// mounts nothing, so it also works while no pod has the volume mounted.
func (k *kept) onDisk() error {
	device := "/dev/" + k.group + "/" + k.name
	read := "cat " + device
	if !isRaw(k.claim) {
		read = "debugfs -R 'cat /payload' " + device + " 2>/dev/null"
	}
	out, err := k.Lab.OnNode(k.within(), thinNode, "sh", "-c", read+" | sha256sum")
	if err != nil {
		return err
	}
	if sum, _, _ := strings.Cut(out, " "); sum != k.sum {
		return fmt.Errorf("the payload of %s (%s) has checksum %s, written was %s", k.claim.Name, device, sum, k.sum)
	}
	return nil
}

// again makes another pod for the volume, and has it read everything.
func (k *kept) again() {
	k.Helper()
	k.pod = k.run(k.claim.Name+"-again", k.claim, cluster.OnNode(thinNode), cluster.Steadfast)
	k.readsAll()
}
