package agent

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/inline"
)

// watchPatience is how long a pod that needs a new volume waits for the first
// answer of the API server; the kubelet tries again.
const watchPatience = 5 * time.Second

// offers gives the inline service the classes, the node's labels and the pools for new
// volumes, from the watch of the cluster half and the latest report.
type offers struct {
	node     string
	observer *pools.Observer
	reader   atomic.Pointer[client.Reader]
}

var _ inline.Offers = (*offers)(nil)

func (o *offers) use(r client.Reader) { o.reader.Store(&r) }

// Pools implements inline.Offers.
func (o *offers) Pools() []provision.Pool { return o.observer.Latest().Pools }

// Class implements inline.Offers. While the watch is not filled yet, or was never
// connected, the error is ErrUnavailable, so that the caller tries again.
func (o *offers) Class(ctx context.Context, name string) (*v1alpha1.PoolClass, map[string]string, error) {
	reader := o.reader.Load()
	if reader == nil {
		return nil, nil, fmt.Errorf("%w: PoolClass %s is not known yet", provision.ErrUnavailable, name)
	}
	ctx, cancel := context.WithTimeout(ctx, watchPatience) // Get waits for a watch that is not filled
	defer cancel()
	class, node := &v1alpha1.PoolClass{}, nodeMetadata()
	err := (*reader).Get(ctx, client.ObjectKey{Name: name}, class)
	if apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("%w: PoolClass %s does not exist", provision.ErrInvalid, name)
	}
	if err == nil {
		err = (*reader).Get(ctx, client.ObjectKey{Name: o.node}, node)
	}
	if err != nil {
		// The error may hold the deadline above, not the caller's: it is quoted and not wrapped.
		return nil, nil, fmt.Errorf("%w: PoolClass %s and the node's labels are not known yet: %s", provision.ErrUnavailable, name, err.Error())
	}
	return class, node.GetLabels(), nil
}

// sweepInline removes the inline volumes of pods that are gone, after each report
// of the pools.
func (a *Agent) sweepInline(ctx context.Context, live client.Reader) error {
	reports, done := a.observer.Subscribe()
	defer done()
	log := a.options.Log.WithName("inline")
	sweeper := inline.NewSweeper(a.inline, podsOf{a.options.Node, live}, a.options.Clock, log)
	for {
		if snapshot := a.observer.Latest(); snapshot.Err == nil {
			a.sweepOnce(ctx, sweeper, snapshot.Pools, log)
		}
		a.pause(ctx, sweepInterval)
		select {
		case <-ctx.Done():
			return nil
		case <-reports:
		}
	}
}

func (a *Agent) sweepOnce(ctx context.Context, s *inline.Sweeper, pools []provision.Pool, log logr.Logger) {
	ctx, cancel := context.WithTimeout(ctx, inlineSweepTimeout)
	defer cancel()
	if err := s.Sweep(ctx, pools); err != nil && ctx.Err() == nil {
		log.Error(err, "inline volumes of pods that are gone are left for now")
	}
}

// podsOf asks for the pods of a node.
type podsOf struct {
	node string
	live client.Reader
}

// All are the pods, with their status.
func (p podsOf) All(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := p.live.List(ctx, &list, client.MatchingFields{"spec.nodeName": p.node})
	return list.Items, err
}

// Here implements inline.Pods. A list without a resource version reads the latest state,
// not a cache.
func (p podsOf) Here(ctx context.Context) (sets.Set[string], error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := p.live.List(ctx, list, client.MatchingFields{"spec.nodeName": p.node}); err != nil {
		return nil, err
	}
	here := sets.New[string]()
	for _, pod := range list.Items {
		here.Insert(string(pod.UID))
		if static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static != "" {
			here.Insert(static)
		}
	}
	return here, nil
}
