package binding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/metrics"
)

// Binder is upstream's binder, except for pods whose unbound claims are all
// Berth's.
type Binder struct {
	volumebinding.SchedulerVolumeBinder

	client  kubernetes.Interface
	classes storagelisters.StorageClassLister
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	pods    corelisters.PodLister
	nodes   corelisters.NodeLister
	waiters *waiters
	timeout time.Duration
	// podEvery replaces the constant of that name if set.
	podEvery time.Duration
}

// podEvery is how often Binder checks whether the pod still exists. It uses no
// events for that: a handler of pods would be called, and two goroutines woken, for
// every change of every pod in the cluster, and nearly all have no claim here.
const podEvery = time.Second

// NewBinder wraps a binder. It listens to the factory's informers of claims and
// PersistentVolumes; timeout bounds the wait for the claims of one pod.
func NewBinder(inner volumebinding.SchedulerVolumeBinder, client kubernetes.Interface, factory informers.SharedInformerFactory, timeout time.Duration) (*Binder, error) {
	core := factory.Core().V1()
	b := &Binder{
		SchedulerVolumeBinder: inner,
		client:                client,
		classes:               factory.Storage().V1().StorageClasses().Lister(),
		claims:                core.PersistentVolumeClaims().Lister(),
		volumes:               core.PersistentVolumes().Lister(),
		pods:                  core.Pods().Lister(),
		nodes:                 core.Nodes().Lister(),
		waiters:               newWaiters(),
		timeout:               timeout,
	}
	for _, informer := range []cache.SharedIndexInformer{
		core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(b.waiters.handler()); err != nil {
			return nil, fmt.Errorf("listening to the claims of pods: %w", err)
		}
	}
	return b, nil
}

// BindPodVolumes writes the pod's choices and waits until its claims are bound.
func (b *Binder) BindPodVolumes(ctx context.Context, pod *corev1.Pod, volumes *volumebinding.PodVolumes) error {
	if !b.ours(volumes) {
		return b.SchedulerVolumeBinder.BindPodVolumes(ctx, pod, volumes)
	}
	if err := b.bind(ctx, pod, volumes.DynamicProvisions); err != nil {
		metrics.VolumeSchedulingStageFailed.WithLabelValues("bind").Inc()
		return fmt.Errorf("binding volumes: %w", err)
	}
	return nil
}

// ours is whether all unbound claims are to be provisioned by Berth. Static matches
// go the stock way for every driver: they are rare, and only upstream knows which
// objects to write for them.
func (b *Binder) ours(volumes *volumebinding.PodVolumes) bool {
	if len(volumes.StaticBindings) > 0 || len(volumes.DynamicProvisions) == 0 {
		return false
	}
	return !slices.ContainsFunc(volumes.DynamicProvisions, func(p *volumebinding.DynamicProvision) bool {
		class, err := b.classes.Get(volume.GetPersistentVolumeClaimClass(p.PVC))
		return err != nil || !ours.Provisions(class)
	})
}

// bind listens first and writes then, so that no answer can be missed.
func (b *Binder) bind(ctx context.Context, pod *corev1.Pod, provisions []*volumebinding.DynamicProvision) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	var keys []key
	for _, p := range provisions {
		keys = append(keys, key{namespace: p.PVC.Namespace, name: p.PVC.Name})
	}
	woken, stop := b.waiters.wait(keys)
	defer stop()
	tick := time.NewTicker(cmp.Or(b.podEvery, podEvery))
	defer tick.Stop()

	// A claim that was assumed and not written is given back by Unreserve, which
	// follows every error.
	written := make([]*corev1.PersistentVolumeClaim, 0, len(provisions))
	for _, p := range provisions {
		claim, err := b.client.CoreV1().PersistentVolumeClaims(p.PVC.Namespace).Update(ctx, p.PVC, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("writing the selected node into claim %s: %w", p.PVC.Name, err)
		}
		written = append(written, claim)
	}
	for {
		waiting, err := b.look(pod, written)
		if err != nil || waiting == "" {
			return err
		}
		select {
		case <-woken:
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for claim %s to be bound: %w", waiting, errors.Join(ctx.Err(), context.Cause(ctx)))
		}
	}
}
