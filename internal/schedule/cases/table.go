package cases

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

type pools = map[string]string

func fits(p pools) Answer             { return Answer{Pools: p} }
func not(reason ledger.Reason) Answer { return Answer{Reason: reason} }

// with applies options to a cluster.
func with(l schedule.Lists, options ...func(*schedule.Lists)) schedule.Lists {
	for _, option := range options {
		option(&l)
	}
	return l
}

func claims(c ...corev1.PersistentVolumeClaim) func(*schedule.Lists) {
	return func(l *schedule.Lists) { l.Claims = append(l.Claims, c...) }
}

func volumes(v ...v1alpha1.Volume) func(*schedule.Lists) {
	return func(l *schedule.Lists) { l.Volumes = append(l.Volumes, v...) }
}

func others(p ...corev1.Pod) func(*schedule.Lists) {
	return func(l *schedule.Lists) { l.Pods = append(l.Pods, p...) }
}

// All is the table. Its keys are sentences.
func All() map[string]Case {
	all := map[string]Case{}
	for _, part := range []map[string]Case{sizes(), occupied(), closed(), waiting(), copies(), sourceless()} {
		maps.Copy(all, part)
	}
	return all
}

// two is a cluster of a large and a small node.
func two() schedule.Lists { return cluster(node("large", 20*gi), node("small", 4*gi)) }

// sizes are about empty pools.
func sizes() map[string]Case {
	return map[string]Case{
		"one claim goes where there is room": {
			Lists: with(two(), claims(claim("1", 5*gi))), Pod: pod("1"), Best: "large",
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0"}), "small": not(ledger.NoRoom)},
		},
		"where it fits on both the one with more to spare is better": {
			Lists: with(two(), claims(claim("1", 2*gi))), Pod: pod("1"), Best: "large",
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0"}), "small": fits(pools{"1": "vg0"})},
		},
		"the last byte may be used": {
			Lists: with(two(), claims(claim("1", 4*gi))), Pod: pod("1"), Best: "large",
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0"}), "small": fits(pools{"1": "vg0"})},
		},
		"sizes are rounded up to extents": {
			Lists: with(two(), claims(claim("1", 4*gi-1), claim("2", 16*gi+1))), Pod: pod("1", "2"),
			Nodes: map[string]Answer{"large": not(ledger.NotTogether), "small": not(ledger.NoRoom)},
		},
		"several claims are fitted together": {
			Lists: with(cluster(node("n", 5*gi)), claims(claim("1", 3*gi), claim("2", 3*gi))), Pod: pod("1", "2"),
			Nodes: map[string]Answer{"n": not(ledger.NotTogether)},
		},
		"the only way to pack them is found": {
			Lists: with(cluster(node("n", 6*gi, 5*gi)), claims(claim("1", 3*gi), claim("2", 3*gi), claim("3", 5*gi))), Pod: pod("1", "2", "3"), Best: "n",
			Nodes: map[string]Answer{"n": fits(pools{"1": "vg0", "2": "vg0", "3": "vg1"})},
		},
		"an inline volume counts beside a claim": {
			Lists: with(cluster(node("n", 5*gi)), claims(claim("1", 3*gi))), Pod: inline(pod("1"), "scratch", "3Gi"),
			Nodes: map[string]Answer{"n": not(ledger.NotTogether)},
		},
	}
}

// occupied are about things that take room from a pod, and things that do not.
func occupied() map[string]Case {
	return map[string]Case{
		"volumes of others are in the way": {
			Lists: with(two(), claims(claim("1", 2*gi)), volumes(volume("8", "small", 3*gi))), Pod: pod("1"), Best: "large",
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0"}), "small": not(ledger.NoRoom)},
		},
		"a claim whose node was chosen by another scheduler is in the way": {
			Lists: with(two(), claims(claim("1", 2*gi), selected(claim("8", 3*gi), "small"))), Pod: pod("1"), Best: "large",
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0"}), "small": not(ledger.NoRoom)},
		},
		"inline volumes of running pods are in the way": {
			Lists: with(two(), claims(claim("1", 2*gi)), others(running("db", "small", "3Gi"))), Pod: pod("1"), Best: "large",
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0"}), "small": not(ledger.NoRoom)},
		},
		"an inline volume that no pool can hold is not in the way": {
			Lists: with(two(), claims(claim("1", 2*gi)), others(running("greedy", "small", "1Ei"))), Pod: pod("1"), Best: "large",
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0"}), "small": fits(pools{"1": "vg0"})},
		},
		"an inline volume that its class does not admit is not in the way": {
			Lists: with(two(), claims(claim("1", 2*gi)), others(*in("yard", running("db", "small", "3Gi")))), Pod: pod("1"), Best: "large",
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0"}), "small": fits(pools{"1": "vg0"})},
		},
		"a claim that has its volume needs no room where it is": {
			Lists: with(two(), claims(claim("1", 4*gi)), volumes(volume("1", "small", 4*gi))), Pod: pod("1"),
			Nodes: map[string]Answer{"large": fits(pools{"1": "vg0"}), "small": fits(pools{"1": "vg0"})},
		},
	}
}

// closed are about nodes and pools that take nothing.
func closed() map[string]Case {
	sick := func(n *v1alpha1.StorageNode) { n.Status.Pools[0].Health = v1alpha1.PoolDegraded }
	serving := func(class string) func(*v1alpha1.StorageNode) {
		return func(n *v1alpha1.StorageNode) { n.Status.Pools[0].Classes = []string{class} }
	}
	notReady := func(n *v1alpha1.StorageNode) {
		n.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse}}
	}
	able := func(n *v1alpha1.StorageNode) { n.Status.Features = v1alpha1.AllFeatures() }
	return map[string]Case{
		"a degraded pool takes nothing new": {
			Lists: with(cluster(changed(node("n", 9*gi), sick)), claims(claim("1", gi))), Pod: pod("1"),
			Nodes: map[string]Answer{"n": not(ledger.PoolUnhealthy)},
		},
		"a pool of another class is not used": {
			Lists: with(cluster(changed(node("n", 9*gi), serving("slow"))), claims(claim("1", gi))), Pod: pod("1"),
			Nodes: map[string]Answer{"n": not(ledger.NotServed)},
		},
		"an agent that is too old for what the StorageClass asks for takes nothing": {
			Lists: with(cluster(node("old", 9*gi), changed(node("new", 4*gi), able)), claims(tuned(claim("1", gi)))), Pod: pod("1"), Best: "new",
			Nodes: map[string]Answer{"old": {Reason: ledger.AgentTooOld, Told: "too old"}, "new": fits(pools{"1": "vg0"})},
		},
		"an agent that is too old for what a pod asks of an inline volume takes nothing": {
			Lists: cluster(node("old", 9*gi), changed(node("new", 4*gi), able)), Pod: asking("mkfsOptions", "-m 0", inline(pod(), "scratch", "1Gi")), Best: "new",
			Nodes: map[string]Answer{"old": {Reason: ledger.AgentTooOld, Told: "too old"}, "new": fits(pools{"scratch": "vg0"})},
		},
		"a node that cannot list its pools takes nothing new": {
			Lists: with(cluster(changed(node("n", 9*gi), notReady)), claims(claim("1", gi))), Pod: pod("1"),
			Nodes: map[string]Answer{"n": not(ledger.NodeNotReady)},
		},
		"a node whose agent is silent takes nothing new": {
			Lists: with(cluster(node("n", 9*gi)), claims(claim("1", gi))), Pod: pod("1"), Silent: map[string]string{"n": "silent for 41s"},
			Nodes: map[string]Answer{"n": not(ledger.NodeNotReady)},
		},
		"a class that does not admit inline volumes of the namespace gives none": {
			Lists: two(), Pod: in("yard", *inline(pod(), "scratch", "1Gi")),
			Nodes: map[string]Answer{
				"large": {Reason: ledger.NotAdmitted, Told: "no inline volumes in the pod's namespace"}, "small": not(ledger.NotAdmitted),
			},
		},
		"a node without a report takes nothing": {
			Lists: with(cluster(node("n", 9*gi)), claims(claim("1", gi))), Pod: pod("1"), Best: "n",
			Nodes: map[string]Answer{"n": fits(pools{"1": "vg0"}), "plain": not(ledger.NotReported)},
		},
	}
}

// waiting are about answers that do not depend on the nodes.
func waiting() map[string]Case {
	return map[string]Case{
		"a claim that does not wait has to be bound first": {
			Lists: with(two(), claims(eager(claim("1", gi)))), Pod: pod("1"), Unready: "is to be bound before",
		},
		"a pod without volumes of ours goes anywhere": {
			Lists: two(), Pod: pod(), Nodes: map[string]Answer{"large": fits(nil), "small": fits(nil), "plain": fits(nil)},
		},
	}
}

func tuned(c corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaim {
	c.Spec.StorageClassName = new("tuned")
	return c
}

func eager(c corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaim {
	c.Spec.StorageClassName = new("eager")
	return c
}
