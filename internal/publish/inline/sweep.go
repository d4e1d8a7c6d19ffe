package inline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
)

// askInterval is the least time between two questions to the API server: a pod may stay
// there long after the kubelet gave up its volume, for example one that has run to
// its end.
const askInterval = 30 * time.Second

// Pods is the API server as a sweep uses it.
type Pods interface {
	// Here returns the UIDs of all pods on this node, read live. A static pod has
	// two: its own, and that of the object that mirrors it.
	Here(ctx context.Context) (sets.Set[string], error)
}

// Sweeper removes the volumes that the kubelet will not unpublish any more.
type Sweeper struct {
	service *Service
	pods    Pods
	clock   clock.PassiveClock
	log     logr.Logger

	asked time.Time
}

// NewSweeper makes a sweeper of the service's volumes.
func NewSweeper(s *Service, p Pods, c clock.PassiveClock, log logr.Logger) *Sweeper {
	return &Sweeper{service: s, pods: p, clock: c, log: log}
}

// Sweep looks once at the volumes in a report of the pools, and at all marks.
func (w *Sweeper) Sweep(ctx context.Context, pools []provision.Pool) error {
	lost, unknown := w.lost(pools)
	now := w.clock.Now()
	if len(lost) == 0 || now.Sub(w.asked) < askInterval {
		return unknown
	}
	w.asked = now
	// After the read of the kubelet's directory: the API server knows a pod before the
	// kubelet makes anything for it.
	here, err := w.pods.Here(ctx)
	if err != nil {
		return fmt.Errorf("asking for the node's pods: %w", err)
	}
	problems := []error{unknown}
	for _, v := range lost {
		if !here.Has(v.owner.PodUID) {
			problems = append(problems, w.collect(ctx, v))
		}
	}
	return errors.Join(problems...)
}

// lost returns the volumes that the kubelet keeps no directory for. The error is
// about the volumes for which that could not be read.
func (w *Sweeper) lost(pools []provision.Pool) ([]volume, error) {
	marks, err := w.service.marks.List()
	if err != nil {
		return nil, err
	}
	known := sets.New[volume]()
	for _, m := range marks {
		known.Insert(volume{m.ID, m.Owner})
	}
	for _, p := range pools {
		for _, v := range p.Volumes {
			if v.Inline != (provision.Inline{}) {
				known.Insert(volume{v.ID, v.Inline})
			}
		}
	}
	var lost []volume
	var problems []error
	for v := range known {
		kept, err := w.service.kubelet.HasPodVolume(v.owner.PodUID, v.owner.Name)
		if err != nil {
			problems = append(problems, err)
		} else if !kept {
			lost = append(lost, v)
		}
	}
	return lost, errors.Join(problems...)
}

// collect removes one volume. It skips one that another call is working on.
func (w *Sweeper) collect(ctx context.Context, v volume) error {
	end, err := w.service.begin(ctx, v)
	if errors.Is(err, keyed.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer end()
	if kept, err := w.service.kubelet.HasPodVolume(v.owner.PodUID, v.owner.Name); err != nil || kept {
		return err
	}
	if err := w.service.remove(ctx, v); err != nil {
		return err
	}
	w.log.Info("volume of a pod that is gone was deleted", "volume", v.id, "pod", v.owner.PodUID, "name", v.owner.Name)
	return nil
}
