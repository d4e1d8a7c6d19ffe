package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// station is a point on the way from a posted claim to a running pod.
type station int

const (
	posted station = iota
	selected
	placed
	carved
	bound
	scheduled
	running
	stations
)

// between names the stretch that ends at each station.
var between = [stations]string{
	selected: "scheduler chooses a node", placed: "controller places the volume", carved: "agent carves it",
	bound: "provisioner binds the claim", scheduled: "scheduler sees it bound", running: "mounted, pod started",
}

// timeline holds the time when each station was first seen.
type timeline [stations]time.Time

// took returns the time from posted to running.
func (t *timeline) took() time.Duration { return t[running].Sub(t[posted]) }

// stretch returns the time from the station before to a station; zero if the station was
// not reached, as for a pod without a volume.
func (t *timeline) stretch(s station) time.Duration {
	if t[s].IsZero() {
		return 0
	}
	for before := s - 1; before >= posted; before-- {
		if !t[before].IsZero() {
			return max(t[s].Sub(t[before]), 0)
		}
	}
	return 0
}

// recorder watches claims, volumes and pods and records the timeline of each name. A claim
// and its pod have the same name.
type recorder struct {
	mu       sync.Mutex
	lines    map[string]*timeline
	finished chan string
}

// record starts watching a namespace; stop ends it.
func record(ctx context.Context, c *cluster.Cluster, namespace string) (r *recorder, stop func(), err error) {
	r = &recorder{lines: map[string]*timeline{}, finished: make(chan string, 1000)}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	stop = func() { cancel(); all.Wait() }
	for _, list := range []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.PodList{}, &v1alpha1.VolumeList{}} {
		opts := []client.ListOption{client.InNamespace(namespace)}
		if _, clusterWide := list.(*v1alpha1.VolumeList); clusterWide {
			opts = nil
		}
		w, err := c.Watch(ctx, list, opts...)
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("watching: %w", err)
		}
		all.Go(func() { r.follow(w, namespace) })
		context.AfterFunc(ctx, w.Stop)
	}
	return r, stop, nil
}

func (r *recorder) follow(w watch.Interface, namespace string) {
	for event := range w.ResultChan() {
		now := time.Now()
		switch o := event.Object.(type) {
		case *corev1.PersistentVolumeClaim:
			r.mark(o.Name, selected, o.Annotations["volume.kubernetes.io/selected-node"] != "", now)
			r.mark(o.Name, bound, cluster.Bound(o), now)
		case *v1alpha1.Volume:
			if ref := o.Spec.ClaimRef; ref != nil && ref.Namespace == namespace {
				r.mark(ref.Name, placed, true, now)
				r.mark(ref.Name, carved, len(o.Status.Replicas) > 0 && o.Status.Replicas[0].Ready, now)
			}
		case *corev1.Pod:
			r.mark(o.Name, scheduled, o.Spec.NodeName != "", now)
			r.mark(o.Name, running, cluster.Running(o), now)
		}
	}
}

// start notes that a claim and a pod are about to be posted.
func (r *recorder) start(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[name] = &timeline{posted: time.Now()}
}

func (r *recorder) mark(name string, s station, reached bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.lines[name]
	if !reached || line == nil || !line[s].IsZero() {
		return
	}
	line[s] = at
	if s == running {
		r.finished <- name
	}
}

// await waits until n pods have reached running since the last await.
func (r *recorder) await(ctx context.Context, n int) error {
	for range n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d pods to run: %w", n, ctx.Err())
		case <-r.finished:
		}
	}
	return nil
}

// line is the timeline of one name.
func (r *recorder) line(name string) timeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.lines[name]
}
