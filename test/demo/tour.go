package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
)

// limit bounds each wait of the tour: nodes are emulated and slow.
const limit = 3 * time.Minute

// place says where the data are.
type place struct {
	pod, claim, node, group, volume, size, device, wrote, read string
}

func (p place) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	for _, row := range [][2]string{
		{"pod", p.pod}, {"claim", p.claim}, {"node", p.node}, {"volume group", p.group},
		{"logical volume", p.volume}, {"size", p.size}, {"mounted from", p.device},
		{"wrote", p.wrote}, {"read back", p.read},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
	}
}

// tour takes a claim from nothing to data on a disk, and cleans up.
func tour(ctx context.Context, s *steps, c *cluster.Cluster) (place, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "berth-demo-"}}
	if err := c.Create(ctx, ns); err != nil {
		return place{}, fmt.Errorf("creating a namespace: %w", err)
	}
	claim := cluster.Claim(ns.Name, "data", "berth-ext4", "1Gi")
	pod := cluster.Pod(ns.Name, "writer", []*corev1.PersistentVolumeClaim{claim})
	if err := follow(ctx, s, c, claim, pod); err != nil {
		return place{}, err
	}
	where := place{wrote: "ahoy from " + pod.Name}
	err := s.do("data written and read back", func() (err error) {
		where.read, err = c.Exec(ctx, pod, "sh", "-c", "echo '"+where.wrote+"' > /data/file && sync && cat /data/file")
		return err
	})
	if err != nil {
		return place{}, err
	}
	if where.read != where.wrote {
		return place{}, fmt.Errorf("read %q, wrote %q", where.read, where.wrote)
	}
	if err := where.find(ctx, c, claim, pod); err != nil {
		return place{}, err
	}
	return where, s.do("pod, claim and logical volume deleted", func() error { return remove(ctx, c, ns, where.volume) })
}

// follow posts the claim and the pod and waits for each station on the way.
func follow(ctx context.Context, s *steps, c *cluster.Cluster, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := s.do("claim and pod posted, claim bound to a volume", func() error {
		for _, o := range []client.Object{claim, pod} {
			if err := c.Create(ctx, o); err != nil {
				return err
			}
		}
		return cluster.Await(ctx, c, claim, "bound", cluster.Bound)
	})
	if err != nil {
		return err
	}
	return s.do("volume mounted, pod running", func() error {
		return cluster.Await(ctx, c, pod, "running", cluster.Running)
	})
}

// find asks the cluster and the node where the data are.
func (p *place) find(ctx context.Context, c *cluster.Cluster, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) error {
	var v v1alpha1.Volume
	if err := c.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &v); err != nil {
		return err
	}
	p.pod, p.claim = pod.Namespace+"/"+pod.Name, claim.Namespace+"/"+claim.Name
	p.node = pod.Spec.NodeName
	out, err := c.Lab.OnNode(ctx, p.node, "lvs", "--noheadings", "--separator", "|", "-o", "vg_name,lv_name,lv_size,lv_path",
		install.VolumeGroup+"/"+v.Name)
	if err != nil {
		return err
	}
	fields := strings.Split(strings.TrimSpace(out), "|")
	if len(fields) != 4 {
		return fmt.Errorf("unexpected answer of lvs on %s: %q", p.node, out)
	}
	p.group, p.volume, p.size, p.device = fields[0], fields[1], fields[2], fields[3]
	return nil
}

// remove deletes the namespace and waits until the volume is gone as well.
func remove(ctx context.Context, c *cluster.Cluster, ns *corev1.Namespace, volume string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := c.Delete(ctx, ns); err != nil {
		return err
	}
	if err := cluster.AwaitGone(ctx, c, ns); err != nil {
		return err
	}
	return cluster.AwaitGone(ctx, c, &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: volume}})
}
