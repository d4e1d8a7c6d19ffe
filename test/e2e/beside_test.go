//go:build e2e && thorough

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/rounds"
)

const (
	// plainPods are started for each round.
	plainPods = 3
	// evicted is how long Kubernetes lets a pod stay on a node that is lost, in seconds.
	evicted = int64(300)
	// forced is how long stock Kubernetes may take. A node is lost after 50 s, its pods are evicted after five minutes, and
	// six more go by after which it detaches by force what no pod has any more.
	forced = 13 * time.Minute
)

func TestWhatAFailoverIsComparedWith(t *testing.T) {
	b := beginFor(t, time.Duration(*roundsToPlay)*(2*forced+8*again))
	record := func(r rounds.Round) {
		t.Logf("%s: %.1f s, %v, failed %q", r.Fault, r.Gap, r.Steps, r.Failed)
		if r.Failed != "" && r.Fault != rounds.Stock { // that Kubernetes does not come back is a result
			t.Errorf("%s, round %d: %s", r.Fault, r.Number, r.Failed)
		}
		b.must(rounds.Append(*results, r), "writing the result")
	}
	for n := 1; n <= *roundsToPlay*plainPods; n++ {
		record(b.startsPlainPod(n))
	}
	s := newDeployed(b)
	for n := 1; n <= *roundsToPlay; n++ {
		record(s.play(n, rounds.StockTaints))
		record(s.play(n, rounds.Stock))
	}
}

// startsPlainPod starts a pod without a volume.
func (b *bench) startsPlainPod(n int) rounds.Round {
	b.Helper()
	pod := cluster.Pod(b.namespace, fmt.Sprint("plain-", n), nil, cluster.OnNode("node1"))
	began := time.Now()
	b.create(pod)
	b.awaitRunning(pod)
	r := rounds.Round{Number: n, Fault: rounds.PlainPod, Victim: "node1", Gap: time.Since(began).Round(time.Millisecond).Seconds()}
	b.remove(pod)
	return r
}

// deployed is a Deployment whose disk is attached by Kubernetes alone.
type deployed struct {
	*bench
	consoles *consoles
	labels   client.MatchingLabels
}

func newDeployed(b *bench) *deployed {
	s := &deployed{bench: b, consoles: followConsoles(b, labNodes), labels: client.MatchingLabels{"app": "stock"}}
	newSAN(b)
	claim := cluster.Claim(b.namespace, "stock", "", "256Mi", cluster.Raw)
	claim.Spec.VolumeName = b.namespace + "-stock"
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("256Mi")}, AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: b.namespace, Name: claim.Name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{
				TargetPortal: "10.77.0.2:3260", IQN: "iqn.2026-01.dev.berth.lab:san", Lun: 1,
			}},
		},
	}
	b.create(pv, claim)
	b.Cleanup(func() { b.remove(pv) })
	pod := cluster.Pod(b.namespace, "stock", []*corev1.PersistentVolumeClaim{claim}, recordsWrites, onNodes(labNodes), evictable)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "stock"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: s.labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: s.labels}, Spec: pod.Spec},
		},
	}
	b.create(d)
	b.Cleanup(func() { b.remove(d) })
	return s
}

// onNodes lets a pod run on some nodes alone.
func onNodes(names []string) cluster.PodOption {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names},
			}}},
		}}}
	}
}

// evictable has the tolerations that Kubernetes gives each pod. The lab's are shorter.
func evictable(p *corev1.Pod) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(evicted),
		})
	}
}

// play takes the power of the node that writes, and gives it back when another one has written.
func (s *deployed) play(n int, fault string) rounds.Round {
	r := rounds.Round{Number: n, Fault: fault, Rebooted: true}
	if err := s.run(&r); err != nil {
		r.Failed = err.Error()
	}
	return r
}

func (s *deployed) run(r *rounds.Round) error {
	ctx, cancel := context.WithTimeout(s.ctx, forced+4*again)
	defer cancel()
	pod, err := s.settled(ctx)
	if err != nil {
		return err
	}
	term, steps := s.consoles.Term(), &rounds.Stations{}
	r.Victim = pod.Spec.NodeName
	pods, err := s.Watch(ctx, &corev1.PodList{}, client.InNamespace(s.namespace), s.labels)
	if err != nil {
		return err
	}
	defer pods.Stop()
	steps.Begin(time.Now())
	go nextPods(pods, pod.UID, "the next pod is bound", steps)
	if _, err := s.Lab.Output(ctx, "power", "off", r.Victim); err != nil {
		return err
	}
	var failed error
	if r.Fault == rounds.StockTaints {
		failed = s.outOfService(ctx, r.Victim, true)
	}
	if failed == nil {
		failed = rounds.Until(ctx, forced, "another writer has written", func() bool {
			at, written := s.consoles.After(term)
			if written {
				steps.Reach(rounds.Written, at)
			}
			return written
		})
	}
	r.Steps, r.Gap = steps.List(), s.consoles.Gap(steps.Began()).Round(time.Millisecond).Seconds()
	_, off := s.Lab.Output(ctx, "power", "on", r.Victim)
	healed := time.Now()
	if err := errors.Join(off, s.outOfService(ctx, r.Victim, false)); err != nil {
		return errors.Join(failed, err)
	}
	_, err = s.settled(ctx)
	r.Moved, r.Back = failed == nil, time.Since(healed).Round(10*time.Millisecond).Seconds()
	return cmp.Or(failed, err)
}

// settled waits until one pod is there, which writes, and all nodes are ready.
func (s *deployed) settled(ctx context.Context) (pod *corev1.Pod, err error) {
	began := time.Now()
	err = rounds.Until(ctx, 2*again, "one pod writes, and all nodes are ready", func() bool {
		var pods corev1.PodList
		if s.List(ctx, &pods, client.InNamespace(s.namespace), s.labels) != nil || len(pods.Items) != 1 || !cluster.Running(&pods.Items[0]) {
			return false
		}
		for _, name := range labNodes {
			node := &corev1.Node{}
			if s.Get(ctx, client.ObjectKey{Name: name}, node) != nil || !ready(node) {
				return false
			}
		}
		pod = &pods.Items[0]
		return s.consoles.Since(began) >= 5
	})
	return pod, err
}

// outOfService taints a node as an administrator does who knows that it is off, or takes the taint away.
func (s *deployed) outOfService(ctx context.Context, name string, is bool) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node := &corev1.Node{}
		if err := s.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		if is {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
		}
		return s.Update(ctx, node)
	})
}
