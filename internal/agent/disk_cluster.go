package agent

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// runCluster watches the driver's Volumes and this node's Node until it fails or ctx ends.
func (a *DiskAgent) runCluster(ctx context.Context) error {
	o := a.options
	m, err := a.newManager(cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			// A node learns of a volume from its record: an attachment has no label.
			&v1alpha1.Volume{}: {Field: fields.OneTermEqualSelector("spec.driver", o.Driver.Name)},
			&corev1.Node{}:     {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, o.Node), Transform: taintsAlone},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up the API client: %w", err)
	}
	for object, seen := range map[client.Object]func(object any){&v1alpha1.Volume{}: a.seen, &corev1.Node{}: a.seenNode} {
		informer, err := m.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: seen, UpdateFunc: func(_, now any) { seen(now) }, DeleteFunc: seen,
		}); err != nil {
			return fmt.Errorf("listening to %T: %w", object, err)
		}
	}
	a.wishes.use(o.Driver.View(m.GetClient()))
	return m.Start(ctx)
}

// taintsAlone drops all of a Node but its taints: the rest changes all the time.
func taintsAlone(object any) (any, error) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return object, errors.New("this is no Node")
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion},
		Spec:       corev1.NodeSpec{Taints: n.Spec.Taints},
	}, nil
}
