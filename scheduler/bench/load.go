package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
)

// kind says which volumes a pod has.
type kind struct {
	claims int
	inline bool
}

// pod of a kind. Its claims are named after it.
func (k kind) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "bench"}},
		Spec: corev1.PodSpec{SchedulerName: schedulerName, Containers: []corev1.Container{{
			Name: "main", Image: "registry.example.com/project/app:v1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("500Mi"),
			}},
		}}},
	}
	if k.claims > 0 {
		pod.Annotations = map[string]string{capacityAnnotation: fmt.Sprint(int64(k.claims) * volumeBytes)}
	}
	for i := range k.claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("data-%d", i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(name, i)},
		}})
	}
	if k.inline {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: v1alpha1.LocalDriverName, VolumeAttributes: map[string]string{"poolClass": class, "size": fmt.Sprint(volumeBytes / 16)},
		}}})
	}
	return pod
}

func claimName(pod string, i int) string { return fmt.Sprintf("%s-%d", pod, i) }

func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity(volumeBytes)}},
		},
	}
}

// times are when pods were created and bound, by this process's clock.
type times struct {
	mu      sync.Mutex
	created map[string]time.Time
	bound   map[string]time.Time
	wake    chan struct{}
}

func newTimes() *times {
	return &times{created: map[string]time.Time{}, bound: map[string]time.Time{}, wake: make(chan struct{}, 1)}
}

// handler handles the events of the informer of pods.
func (t *times) handler() toolscache.ResourceEventHandler {
	seen := func(obj any) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, known := t.bound[pod.Name]; !known {
			t.bound[pod.Name] = time.Now()
		}
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: seen, UpdateFunc: func(_, obj any) { seen(obj) }}
}

// errStuck is the cause when nothing more is bound.
var errStuck = errors.New("nothing more is bound")

// await waits until all these pods are bound, and returns when those that are
// were created and bound. The error is errStuck when none was bound for longer
// than idle.
func (t *times) await(ctx context.Context, pods []string, idle time.Duration) (created, bound []time.Time, err error) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for have := 0; ; have = len(bound) {
		created, bound = t.of(pods)
		if len(bound) == len(pods) {
			return created, bound, nil
		}
		if len(bound) > have {
			timer.Reset(idle)
		}
		select {
		case <-t.wake:
		case <-timer.C:
			return created, bound, fmt.Errorf("%d of %d pods are bound: %w for %s", len(bound), len(pods), errStuck, idle)
		case <-ctx.Done():
			return created, bound, fmt.Errorf("%d of %d pods are bound: %w", len(bound), len(pods), context.Cause(ctx))
		}
	}
}

// of returns when those of the pods that are bound were created and bound.
func (t *times) of(pods []string) (created, bound []time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range pods {
		if at, known := t.bound[name]; known {
			created, bound = append(created, t.created[name]), append(bound, at)
		}
	}
	return created, bound
}

func (t *times) create(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created[name] = time.Now()
}

// createClaims makes the claims of pods, which are not measured.
func (s *server) createClaims(ctx context.Context, k kind, pods []string) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(abreast)
	for _, pod := range pods {
		for i := range k.claims {
			all.Go(func() error {
				_, err := s.core.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, claim(claimName(pod, i)), metav1.CreateOptions{})
				return err
			})
		}
	}
	if err := all.Wait(); err != nil {
		return fmt.Errorf("creating claims: %w", err)
	}
	return nil
}

func (s *server) createPods(ctx context.Context, k kind, pods []string, t *times) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(abreast)
	for _, name := range pods {
		all.Go(func() error {
			t.create(name)
			_, err := s.core.CoreV1().Pods(namespace).Create(ctx, k.pod(name), metav1.CreateOptions{})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return fmt.Errorf("creating pods: %w", err)
	}
	return nil
}
