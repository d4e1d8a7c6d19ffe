package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/scheduler/internal/controlplane"
)

// stage is the cluster that schedulers are measured on, with everything but the
// scheduler running.
type stage struct {
	*server
	agents      *agents
	provisioner *provisioner
	times       *times
	extender    *extender
	chart       string // the chart's configuration
	serial      int    // of the last measurement
}

// setUp starts the simulated processes. They run until ctx ends. The returned
// context ends before that, with the cause, when one of them has failed.
func setUp(ctx context.Context, s *server, root string) (*stage, context.Context, error) {
	ctx, fail := context.WithCancelCause(ctx)
	g := &stage{server: s, times: newTimes()}
	failed := func(err error) {
		if ctx.Err() == nil {
			fail(err)
		}
	}
	g.agents = newAgents(ctx, s, failed)
	g.provisioner = newProvisioner(ctx, s, g.agents, failed)
	objects, err := controlplane.Render(ctx, root, berthNamespace)
	if err != nil {
		return nil, nil, err
	}
	if g.chart = controlplane.Configuration(objects); g.chart == "" {
		return nil, nil, errors.New("the chart has no configuration for the scheduler")
	}
	if g.extender, err = startExtender(ctx); err != nil {
		return nil, nil, err
	}
	return g, ctx, g.listen(ctx, failed)
}

func (g *stage) listen(ctx context.Context, failed func(error)) error {
	factory := informers.NewSharedInformerFactoryWithOptions(g.core, 0, informers.WithNamespace(namespace))
	for informer, handler := range map[toolscache.SharedIndexInformer]toolscache.ResourceEventHandler{
		factory.Core().V1().Pods().Informer():                   g.times.handler(),
		factory.Core().V1().PersistentVolumeClaims().Informer(): g.provisioner.handler(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	volumes, err := cache.New(g.config, cache.Options{Scheme: g.scheme})
	if err != nil {
		return fmt.Errorf("making a cache: %w", err)
	}
	informer, err := volumes.GetInformer(ctx, &v1alpha1.Volume{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching Volumes: %w", err)
	}
	if _, err := informer.AddEventHandler(g.agents.handler()); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	go func() {
		if err := volumes.Start(ctx); err != nil {
			failed(err)
		}
	}()
	factory.WaitForCacheSync(ctx.Done())
	if !volumes.WaitForCacheSync(ctx) {
		return fmt.Errorf("watching Volumes: %w", context.Cause(ctx))
	}
	return nil
}

// clear removes all pods, claims and volumes, and waits until they are gone.
func (g *stage) clear(ctx context.Context, form publishing) error {
	now, all := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}
	if err := errors.Join(
		g.core.CoreV1().Pods(namespace).DeleteCollection(ctx, now, all),
		g.core.CoreV1().PersistentVolumeClaims(namespace).DeleteCollection(ctx, now, all),
		g.core.CoreV1().PersistentVolumes().DeleteCollection(ctx, now, all),
	); err != nil {
		return fmt.Errorf("removing pods, claims and PersistentVolumes: %w", err)
	}
	var list v1alpha1.VolumeList
	if err := g.berth.List(ctx, &list); err != nil {
		return fmt.Errorf("listing volumes: %w", err)
	}
	each, inner := errgroup.WithContext(ctx)
	each.SetLimit(abreast)
	for i := range list.Items {
		each.Go(func() error { return g.remove(inner, list.Items[i].Name) })
	}
	if err := each.Wait(); err != nil {
		return err
	}
	for {
		if g.agents.count() == 0 {
			return g.agents.reset(form)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for volumes to be gone: %w", context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
