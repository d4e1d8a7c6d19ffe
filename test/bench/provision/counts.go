package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
	"berth.dev/berth/test/scrape"
)

// commandMetric counts, in an agent, the processes it started.
const commandMetric = "berth_poold_command_seconds"

// operation is the cost of one step in a volume's life.
type operation struct {
	name      string
	processes scrape.Counts // by command, on the volume's node
	writes    scrape.Counts // to Volumes, by verb and subresource
	lists     int           // of Volumes
}

// counters are the sums at one moment.
type counters struct{ processes, writes scrape.Counts }

// countLife takes one volume through its life and counts the cost of each step.
// It runs nothing else meanwhile, so all counted requests belong to the step.
func (r *results) countLife(ctx context.Context, c *cluster.Cluster, _ options) error {
	return inNamespace(ctx, c, func(ns string) error {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		claim := cluster.Claim(ns, "life", "berth-ext4", "1Gi")
		pod := cluster.Pod(ns, "life", []*corev1.PersistentVolumeClaim{claim}, cluster.OnNode(firstNode))
		steps := []struct {
			name string
			do   func() error
		}{
			{"create and publish", func() error {
				if err := post(ctx, c, []client.Object{claim, pod}); err != nil {
					return err
				}
				return cluster.Await(ctx, c, pod, "running", cluster.Running)
			}},
			{"stats", func() error { return readStats(ctx, c, pod) }},
			{"expand", func() error { return grow(ctx, c, claim) }},
			{"unpublish", func() error { return gone(ctx, c, pod) }},
			{"delete", func() error {
				// The deletion ends when the bytes are wiped. The step does not ask whether the
				// Volume is gone: the request would be counted.
				volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
				if err := gone(ctx, c, claim); err != nil {
					return err
				}
				if err := cluster.AwaitGone(ctx, c, volume); err != nil {
					return err
				}
				return awaitWiped(ctx, c)
			}},
		}
		for _, step := range steps {
			if err := r.count(ctx, c, step.name, step.do); err != nil {
				return fmt.Errorf("%s: %w", step.name, err)
			}
		}
		return nil
	})
}

func (r *results) count(ctx context.Context, c *cluster.Cluster, name string, do func() error) error {
	before, err := read(ctx, c, firstNode)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := read(ctx, c, firstNode)
	if err != nil {
		return err
	}
	op := operation{name: name, processes: after.processes.Since(before.processes), writes: after.writes.Since(before.writes)}
	for verb, n := range op.writes {
		if strings.HasPrefix(verb, "LIST") {
			op.lists += n
		}
		if strings.HasPrefix(verb, "LIST") || strings.HasPrefix(verb, "GET") || strings.HasPrefix(verb, "WATCH") {
			delete(op.writes, verb)
		}
	}
	r.life = append(r.life, op)
	return nil
}

func grow(ctx context.Context, c *cluster.Cluster, claim *corev1.PersistentVolumeClaim) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return err
	}
	before := claim.DeepCopy()
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	if err := c.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
		return err
	}
	return cluster.Await(ctx, c, claim, "2Gi", cluster.HasCapacity("2Gi"))
}

func gone(ctx context.Context, c *cluster.Cluster, o client.Object) error {
	if err := c.Delete(ctx, o); err != nil {
		return err
	}
	return cluster.AwaitGone(ctx, c, o)
}

// readStats has the kubelet collect the volume's statistics: it asks for the kubelet's
// summary until that shows the claim.
func readStats(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod) error {
	set, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		raw, err := set.CoreV1().RESTClient().Get().Resource("nodes").Name(pod.Spec.NodeName).SubResource("proxy").
			Suffix("stats", "summary").DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("asking the kubelet: %w", err)
		}
		if strings.Contains(string(raw), `"name": "`+pod.Name+`"`) && strings.Contains(string(raw), `"pvcRef"`) {
			return nil
		}
	}
	return ctx.Err()
}

// read takes the counters of a node's agent and of the API server.
func read(ctx context.Context, c *cluster.Cluster, node string) (counters, error) {
	set, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return counters{}, err
	}
	var agents corev1.PodList
	err = c.List(ctx, &agents, client.InNamespace(install.Namespace), client.MatchingFields{"spec.nodeName": node},
		client.MatchingLabels{"app.kubernetes.io/component": "agent"})
	if err != nil {
		return counters{}, fmt.Errorf("finding the agent of %s: %w", node, err)
	}
	if len(agents.Items) != 1 {
		return counters{}, fmt.Errorf("node %s has %d agents, not one", node, len(agents.Items))
	}
	fromAgent, err := parse(set.CoreV1().RESTClient().Get().Namespace(install.Namespace).Resource("pods").
		Name(agents.Items[0].Name + ":9808").SubResource("proxy").Suffix("metrics").DoRaw(ctx))
	if err != nil {
		return counters{}, fmt.Errorf("reading the agent's metrics: %w", err)
	}
	fromServer, err := parse(set.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx))
	if err != nil {
		return counters{}, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return counters{processes: byCommand(fromAgent), writes: byVerb(fromServer)}, nil
}

func parse(raw []byte, err error) (scrape.Families, error) {
	if err != nil {
		return nil, err
	}
	return scrape.Parse(raw)
}

func byCommand(from scrape.Families) scrape.Counts {
	return from.Sum(commandMetric, func(of map[string]string) string { return of["operation"] })
}

func byVerb(from scrape.Families) scrape.Counts {
	return from.Sum("apiserver_request_total", func(of map[string]string) string {
		if of["group"] != "berth.dev" || of["resource"] != "volumes" || !strings.HasPrefix(of["code"], "2") {
			return ""
		}
		return strings.TrimSpace(of["verb"] + " " + of["subresource"])
	})
}

// sum prints counts as "3: 2 lvcreate, 1 mkfs".
func sum(counts scrape.Counts) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[key], key))
	}
	if len(parts) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", counts.Total(""), strings.Join(parts, ", "))
}
