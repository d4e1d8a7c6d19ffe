package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
)

// wait bounds every single wait.
const wait = 5 * time.Minute

// firstNode is the lab's name of its first node, on which everything is measured that needs one node.
const firstNode = "node1"

// classes are the measured StorageClasses; the empty one means a pod without a volume.
var classes = []string{"", "berth-ext4", "berth-xfs"}

// results are the results of the run.
type results struct {
	life       []operation
	sequential map[string][]timeline
	burst      map[string][]timeline
	failures   int
	bare       map[string][]time.Duration
	simulated  []float64
	node       corev1.NodeSystemInfo
}

// look records the software of the nodes.
func (r *results) look(ctx context.Context, c *cluster.Cluster, _ options) error {
	var node corev1.Node
	if err := c.Get(ctx, client.ObjectKey{Name: firstNode}, &node); err != nil {
		return err
	}
	r.node = node.Status.NodeInfo
	return nil
}

// pair is a pod, with its claim unless it has none.
func pair(namespace, name, class string, opts ...cluster.PodOption) (pod *corev1.Pod, objs []client.Object) {
	var claims []*corev1.PersistentVolumeClaim
	if class != "" {
		claim := cluster.Claim(namespace, name, class, "1Gi")
		claims = append(claims, claim)
		objs = append(objs, claim)
	}
	pod = cluster.Pod(namespace, name, claims, opts...)
	return pod, append(objs, pod)
}

// sequence makes claims and pods one after the other, the classes in turn, so
// that disturbances of the machine hit all classes alike.
func (r *results) sequence(ctx context.Context, c *cluster.Cluster, o options) error {
	r.sequential = map[string][]timeline{}
	return inNamespace(ctx, c, func(ns string) error {
		rec, stop, err := record(ctx, c, ns)
		if err != nil {
			return err
		}
		defer stop()
		for i := range o.runs {
			for _, class := range classes {
				name := fmt.Sprintf("run-%d%s", i, strings.TrimPrefix(class, "berth"))
				line, err := once(ctx, c, rec, ns, name, variant{class: class})
				if err != nil {
					return err
				}
				if err := awaitWiped(ctx, c); err != nil {
					return err
				}
				r.sequential[class] = append(r.sequential[class], line)
			}
		}
		return nil
	})
}

// once takes one pod from nothing to running and back to nothing.
func once(ctx context.Context, c *cluster.Cluster, rec *recorder, ns, name string, v variant) (timeline, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_, objs := pair(ns, name, v.class, by(v.scheduler))
	rec.start(name)
	if err := post(ctx, c, objs); err != nil {
		return timeline{}, err
	}
	if err := rec.await(ctx, 1); err != nil {
		return timeline{}, err
	}
	return rec.line(name), remove(ctx, c, objs)
}

// bursts makes many pods at once: first without volumes, then with.
func (r *results) bursts(ctx context.Context, c *cluster.Cluster, o options) error {
	r.burst = map[string][]timeline{}
	for _, class := range classes[:2] {
		err := inNamespace(ctx, c, func(ns string) error { return r.burstOf(ctx, c, ns, class, o.burst) })
		if err != nil {
			return err
		}
	}
	return awaitWiped(ctx, c)
}

func (r *results) burstOf(ctx context.Context, c *cluster.Cluster, ns, class string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*wait)
	defer cancel()
	rec, stop, err := record(ctx, c, ns)
	if err != nil {
		return err
	}
	defer stop()
	for i := range n {
		name := fmt.Sprintf("burst-%d", i)
		_, objs := pair(ns, name, class)
		rec.start(name)
		if err := post(ctx, c, objs); err != nil {
			return err
		}
	}
	if err := rec.await(ctx, n); err != nil {
		return err
	}
	for i := range n {
		r.burst[class] = append(r.burst[class], rec.line(fmt.Sprintf("burst-%d", i)))
	}
	failed, err := failedEvents(ctx, c, ns)
	r.failures += failed
	return err
}

// failedEvents counts failed attempts to provision, repeats included.
func failedEvents(ctx context.Context, c *cluster.Cluster, ns string) (int, error) {
	var events corev1.EventList
	if err := c.List(ctx, &events, client.InNamespace(ns)); err != nil {
		return 0, err
	}
	n := 0
	for _, e := range events.Items {
		if e.Reason == "ProvisioningFailed" {
			n += max(int(e.Count), 1)
		}
	}
	return n, nil
}

// bareCommands times, on one node, the commands that are needed in any case.
func (r *results) bareCommands(ctx context.Context, c *cluster.Cluster, o options) error {
	r.bare = map[string][]time.Duration{}
	script := `t() { date +%s%N; }
mkdir -p /run/bare
a=$(t); lvcreate -y -q -W y -n bare -L 1g vg0 >/dev/null 2>&1
b=$(t); mkfs.$0 -q $1 /dev/vg0/bare
d=$(t); mount /dev/vg0/bare /run/bare
e=$(t); umount /run/bare; lvremove -y -q vg0/bare >/dev/null 2>&1
echo $((b-a)) $((d-b)) $((e-d)) $((e-a))`
	for range o.runs {
		for fs, force := range map[string]string{"ext4": "-F", "xfs": "-f"} {
			out, err := c.Lab.OnNode(ctx, firstNode, "sh", "-c", script, fs, force)
			if err != nil {
				return err
			}
			for i, field := range strings.Fields(out) {
				ns, err := strconv.ParseInt(field, 10, 64)
				if err != nil {
					return fmt.Errorf("reading %q: %w", out, err)
				}
				key := fs + " " + []string{"lvcreate", "mkfs", "mount", "all"}[i]
				r.bare[key] = append(r.bare[key], time.Duration(ns))
			}
		}
	}
	return nil
}

func post(ctx context.Context, c *cluster.Cluster, objs []client.Object) error {
	for _, o := range objs {
		if err := c.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes objects, the last first, and waits until no Volume of theirs
// remains: the next run begins on a quiet machine.
func remove(ctx context.Context, c *cluster.Cluster, objs []client.Object) error {
	for _, obj := range slices.Backward(objs) {
		if err := c.Delete(ctx, obj); err != nil {
			return err
		}
		if err := cluster.AwaitGone(ctx, c, obj); err != nil {
			return err
		}
	}
	return awaitNoVolumes(ctx, c)
}

func awaitNoVolumes(ctx context.Context, c *cluster.Cluster) error {
	var volumes v1alpha1.VolumeList
	if err := c.List(ctx, &volumes); err != nil {
		return err
	}
	for _, v := range volumes.Items {
		if err := cluster.AwaitGone(ctx, c, &v); err != nil {
			return err
		}
	}
	return nil
}

// awaitWiped waits until the nodes have overwritten and removed deleted volumes. That goes on
// after their Volumes are gone, and would disturb the next measurement.
func awaitWiped(ctx context.Context, c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	nodes, err := install.Nodes(ctx, c.Lab)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		for {
			held, err := c.Lab.OnNode(ctx, node.Name, "lvs", "--noheadings", "--options", "lv_name", "--select", "lv_name=~^pvc-")
			if err != nil {
				return fmt.Errorf("waiting for deleted volumes on %s to be wiped: %w", node.Name, err)
			}
			if strings.TrimSpace(held) == "" {
				break
			}
		}
	}
	return nil
}

// inNamespace calls do with a new namespace and then removes that with all its objects.
func inNamespace(ctx context.Context, c *cluster.Cluster, do func(name string) error) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := c.Create(ctx, ns); err != nil {
		return fmt.Errorf("creating a namespace: %w", err)
	}
	if err := do(ns.Name); err != nil {
		return err
	}
	if err := c.Delete(ctx, ns); err != nil {
		return err
	}
	if err := cluster.AwaitGone(ctx, c, ns); err != nil {
		return err
	}
	return awaitNoVolumes(ctx, c)
}
