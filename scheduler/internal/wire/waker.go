package wire

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/scheduler/internal/plugin"
)

// activator is a profile's scheduling queue.
type activator interface {
	ProfileName() string
	Activate(logger klog.Logger, pods map[string]*corev1.Pod)
}

// waker activates the pods that wait for Berth.
type waker struct {
	reader plugin.Reader
	pods   corelisters.PodLister
	due    chan struct{}

	mu       sync.Mutex
	profiles []activator
}

func newWaker(reader plugin.Reader, pods corelisters.PodLister) *waker {
	return &waker{reader: reader, pods: pods, due: make(chan struct{}, 1)}
}

func (w *waker) add(profile activator) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.profiles = append(w.profiles, profile)
}

// wake asks for the pods to be woken, soon and by somebody else.
func (w *waker) wake() {
	select {
	case w.due <- struct{}{}:
	default:
	}
}

// run wakes pods when it is due, until ctx ends.
func (w *waker) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.due:
			if err := w.activate(ctx); err != nil {
				return err
			}
		}
	}
}

func (w *waker) activate(ctx context.Context) error {
	pods, err := w.pods.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	waiting := map[string]map[string]*corev1.Pod{} // by profile
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			continue
		}
		if want, err := w.reader.Read(ctx, pod); err == nil && want == nil {
			continue
		}
		if waiting[pod.Spec.SchedulerName] == nil {
			waiting[pod.Spec.SchedulerName] = map[string]*corev1.Pod{}
		}
		waiting[pod.Spec.SchedulerName][pod.Namespace+"/"+pod.Name] = pod
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, profile := range w.profiles {
		if pods := waiting[profile.ProfileName()]; len(pods) > 0 {
			profile.Activate(klog.FromContext(ctx), pods)
		}
	}
	return nil
}
