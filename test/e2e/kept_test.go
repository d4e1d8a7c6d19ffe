//go:build e2e && thorough

package e2e

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/cluster"
)

// kept is a volume whose bytes must stay. It has a payload, which is written in one go and fills
// a raw device of sixteen mebibytes. A filesystem also has a log that a pod keeps writing.
type kept struct {
	claim *corev1.PersistentVolumeClaim
	pod   *corev1.Pod // the last pod that used it
	// name of the Volume, and of the logical volume in the group.
	name, group string
	sum         string // of the payload
	lines       int    // of the log that were written out, at least
}

// keep writes a volume's payload, through a pod that goes on writing its log.
func (b *bench) keep(claim *corev1.PersistentVolumeClaim, opts ...cluster.PodOption) *kept {
	b.Helper()
	k := &kept{claim: claim}
	k.pod = b.run(claim.Name, claim, append(opts, writing(claim), cluster.OnNode(thinNode), cluster.Steadfast)...)
	k.name = b.volumeOf(claim).Name
	k.group = b.groupOf(k.name)
	b.fill(k, 16)
	return k
}

// fill writes a volume's payload.
func (b *bench) fill(k *kept, mebibytes int) {
	b.Helper()
	b.sh(k.pod, fmt.Sprintf("dd if=/dev/urandom of=%s bs=1M count=%d conv=fsync,notrunc 2>/dev/null", k.path(), mebibytes))
	k.sum = b.sum(k.pod, k)
}

// path of the payload in a pod.
func (k *kept) path() string {
	if raw(k.claim) {
		return cluster.DevicePath
	}
	return cluster.MountPath + "/payload"
}

func raw(c *corev1.PersistentVolumeClaim) bool {
	return ptr.Deref(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock
}

// writing has a pod append to a log for as long as it runs, one number after the other.
func writing(c *corev1.PersistentVolumeClaim) cluster.PodOption {
	return func(p *corev1.Pod) {
		if !raw(c) {
			p.Spec.Containers[0].Command = []string{"sh", "-c", `trap 'exit 0' TERM
touch /data/log; i=$(wc -l < /data/log)
while :; do i=$((i+1)); echo $i >> /data/log; sync; sleep 1 & wait $!; done`}
		}
	}
}

// sum returns the checksum of a payload as a pod reads it.
func (b *bench) sum(p *corev1.Pod, k *kept) string {
	b.Helper()
	sum, _, _ := strings.Cut(b.sh(p, "sha256sum < "+k.path()), " ")
	return sum
}

// readsAll has a pod read all of a volume, and notes how far its log has come.
func (b *bench) readsAll(p *corev1.Pod, k *kept) {
	b.Helper()
	if got := b.sum(p, k); got != k.sum {
		b.Errorf("%s reads a payload with checksum %s, written was %s", p.Name, got, k.sum)
	}
	if raw(k.claim) {
		return
	}
	var torn, lines int
	_, err := fmt.Sscan(b.sh(p, `awk '$1 != NR {torn = 1} END {print torn + 0, NR}' /data/log`), &torn, &lines)
	b.must(err, "reading a log")
	if torn != 0 || lines < k.lines {
		b.Errorf("%s reads a log of %d lines (torn: %d), written were %d", p.Name, lines, torn, k.lines)
	}
	k.lines = lines
}

// groupOf returns the volume group that has a logical volume; empty if none has it.
func (b *bench) groupOf(name string) string {
	b.Helper()
	return b.onNode(thinNode, "lvs", "--noheadings", "-o", "vg_name", "--select", "lv_name="+name)
}

// onDisk returns an error unless the node has a volume's payload. It reads the device and
// mounts nothing, so it also works while no pod has the volume mounted.
func (b *bench) onDisk(k *kept) error {
	device := "/dev/" + k.group + "/" + k.name
	read := "cat " + device
	if !raw(k.claim) {
		read = "debugfs -R 'cat /payload' " + device + " 2>/dev/null"
	}
	out, err := b.Lab.OnNode(b.within(), thinNode, "sh", "-c", read+" | sha256sum")
	if err != nil {
		return err
	}
	if sum, _, _ := strings.Cut(out, " "); sum != k.sum {
		return fmt.Errorf("the payload of %s (%s) has checksum %s, written was %s", k.claim.Name, device, sum, k.sum)
	}
	return nil
}

// stay reads all volumes on their node again and again, for a time in which something
// might destroy them. It ends the test as soon as one has changed.
func (b *bench) stay(during string, d time.Duration, all []*kept) {
	b.Helper()
	over := time.NewTimer(d)
	defer over.Stop()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		for _, k := range all {
			if err := b.onDisk(k); err != nil {
				b.Fatalf("%s, data was destroyed: %v\n%s", during, err, b.onNode(thinNode, "lvs", "-o", "+lv_tags"))
			}
		}
		select {
		case <-over.C:
			return
		case <-b.ctx.Done():
			b.Fatal(b.ctx.Err())
		case <-tick.C:
		}
	}
}

// again makes a pod for a volume, and has it read everything.
func (b *bench) again(k *kept) {
	b.Helper()
	k.pod = b.run(k.claim.Name+"-again", k.claim, cluster.OnNode(thinNode), cluster.Steadfast)
	b.readsAll(k.pod, k)
}
