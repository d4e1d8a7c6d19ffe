package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/trim"
	decidetrim "berth.dev/berth/internal/decide/trim"
)

// addTrimmer adds the worker that trims filesystems. It works in the half that knows the classes: while the API
// server has not been seen since the start, none is trimmed.
func (a *Agent) addTrimmer(m ctrl.Manager) error {
	o := a.options
	own := o.Driver.View(m.GetClient())
	worker := &trim.Worker{
		Volumes: func(ctx context.Context) ([]decidetrim.Volume, error) { return trimmable(ctx, own, o.Node) },
		Trim:    a.staging().Trim,
		// Beside the marks of inline volumes: what is kept there outlives the agent and the machine's boots.
		Book:     trim.Book{Files: journal.Dir(filepath.Join(o.KubeletDir, "plugins", o.Driver.Name, "trims"))},
		Observer: a.trims, Clock: o.Clock, Log: o.Log.WithName("trim"),
	}
	return m.Add(runnable(worker.Start))
}

// trimmable returns the volumes with a replica on a node, with the intervals of their classes. A class that does
// not exist any more asks for nothing.
func trimmable(ctx context.Context, watched client.Reader, node string) ([]decidetrim.Volume, error) {
	var (
		classes v1alpha1.PoolClassList
		volumes v1alpha1.VolumeList
	)
	for _, list := range []client.ObjectList{&classes, &volumes} {
		if err := watched.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing what is watched: %w", err)
		}
	}
	every := map[string]time.Duration{}
	for i := range classes.Items {
		every[classes.Items[i].Name] = classes.Items[i].TrimEvery()
	}
	var here []decidetrim.Volume
	for i := range volumes.Items {
		v := &volumes.Items[i]
		for _, r := range v.Spec.Replicas {
			if r.Node == node {
				here = append(here, decidetrim.Volume{
					ID: v.Name, Pool: r.Pool, Mode: v.Spec.VolumeMode, FSType: v.Spec.FSType, Interval: every[v.Spec.PoolClass],
				})
			}
		}
	}
	return here, nil
}
