package plugin

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/volumes"
)

// Name of the plugin.
const Name = "Berth"

// Plugin is the plugin of one profile.
type Plugin struct {
	// Driver whose volumes are placed.
	Driver   driver.Driver
	Book     Book
	Reader   Reader
	Volumes  Creator
	Refusals *Refusals
	// Strategy by which one of several nodes, and pools, is chosen.
	Strategy ledger.Strategy
	// Static finds PersistentVolumes that claims could match.
	Static Static
	// Placed are the nodes that a Volume was placed on; none if it does not exist.
	Placed func(ctx context.Context, volume string) ([]string, error)
	// Lifetime is the scheduler's. Hints are called without a context.
	Lifetime context.Context
	// Order refuses an order of plugins that would not work. It is called when
	// the profile is complete; nil allows everything.
	Order func() error

	// acceptance replaces the constant of that name if set.
	acceptance time.Duration
}

// Book is the ledger.
type Book interface {
	Request(options ledger.RequestOptions, demands ...ledger.Demand) (*ledger.Request, ledger.Verdict)
	Node(name string) *ledger.Node
	Reserve(node string, r *ledger.Request) ([]ledger.Choice, ledger.Verdict)
	Unreserve(podUID, node string)
	Held(o ledger.Owner, node string) (pool string, held bool)
}

// Reader reads the volumes that a pod wants; nil is none of Berth's.
type Reader interface {
	Read(ctx context.Context, pod *corev1.Pod) (*schedule.PodVolumes, error)
}

// Creator makes Volumes, and gives up those that are only reserved.
type Creator interface {
	Create(ctx context.Context, r volumes.Request) (volumes.Volume, error)
	Abandon(ctx context.Context, name string) error
}

// Static finds PersistentVolumes that claims could match.
type Static struct {
	// Available is whether a StorageClass has PersistentVolumes that no claim has.
	Available func(class string) bool
	// Binder decides which claim gets which, node by node. It is the one of the
	// profile's other plugin, which may be made after this one.
	Binder func() volumebinding.SchedulerVolumeBinder
}

var (
	_ fwk.PreFilterPlugin   = (*Plugin)(nil)
	_ fwk.FilterPlugin      = (*Plugin)(nil)
	_ fwk.PreScorePlugin    = (*Plugin)(nil)
	_ fwk.ScorePlugin       = (*Plugin)(nil)
	_ fwk.ReservePlugin     = (*Plugin)(nil)
	_ fwk.PreBindPlugin     = (*Plugin)(nil)
	_ fwk.EnqueueExtensions = (*Plugin)(nil)
	_ fwk.SignPlugin        = (*Plugin)(nil)
)

// Name of the plugin.
func (*Plugin) Name() string { return Name }

// SignPod lets the scheduler treat pods of one signature alike. Pods with inline
// volumes alone are alike where their volumes are. The needs of a claim depend on
// the claim, so pods with claims of Berth's get no signature.
func (p *Plugin) SignPod(ctx context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	want, err := p.Reader.Read(ctx, pod)
	switch {
	case err != nil:
		return nil, fwk.AsStatus(err)
	case want == nil:
		return nil, nil
	case want.Unready != "" || len(want.Holders) > 0:
		return nil, unsigned
	}
	for i := range want.Wanted {
		if want.Wanted[i].Claim != nil {
			return nil, unsigned
		}
	}
	return []fwk.SignFragment{{Key: fwk.VolumesSignerName, Value: fwk.VolumesSigner(pod)}}, nil
}

var unsigned = fwk.NewStatus(fwk.Unschedulable, "the pod has claims of Berth")
