package wire

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/scheduler/internal/binding"
	"berth.dev/berth/scheduler/internal/plugin"
)

// Plugins makes the plugins of one scheduler. Its zero value is not usable; call
// New.
type Plugins struct {
	fail func(error)

	mu      sync.Mutex
	shared  *shared
	index   func(class string) bool
	binders map[string]volumebinding.SchedulerVolumeBinder // by profile
}

// New makes Plugins. fail is called when something that all plugins need has
// ended: the process cannot go on.
func New(fail func(error)) *Plugins {
	return &Plugins{fail: fail, binders: map[string]volumebinding.SchedulerVolumeBinder{}}
}

// Berth makes the plugin of a profile.
func (p *Plugins) Berth(ctx context.Context, arguments runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := decode(arguments)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	available, err := p.available(handle)
	if err != nil {
		return nil, err
	}
	if p.shared == nil {
		if p.shared, err = share(ctx, args.Namespace, handle, p.fail); err != nil {
			return nil, fmt.Errorf("setting up %s: %w", plugin.Name, err)
		}
	}
	if args.Namespace != p.shared.namespace {
		return nil, fmt.Errorf("setting up %s: profiles name different namespaces, %s and %s", plugin.Name, args.Namespace, p.shared.namespace)
	}
	p.shared.waker.add(handle)
	strategy, _ := ledger.StrategyNamed(args.Strategy) // decode has refused all others
	profile := handle.ProfileName()
	return &plugin.Plugin{
		Driver: served, Book: p.shared.book, Reader: p.shared.reader, Volumes: p.shared.volumes, Refusals: p.shared.waker.refusals,
		Strategy: strategy,
		Static:   plugin.Static{Available: available, Binder: func() volumebinding.SchedulerVolumeBinder { return p.binder(profile) }},
		Placed:   p.shared.placed,
		Lifetime: ctx,
		Order:    plugin.Order(handle),
	}, nil
}

// VolumeBinding makes the plugin in the place of kube-scheduler's.
func (p *Plugins) VolumeBinding(ctx context.Context, arguments runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	available, err := p.available(handle)
	if err != nil {
		return nil, err
	}
	made, err := binding.New(ctx, arguments, handle, available)
	if err != nil {
		return nil, err
	}
	p.binders[handle.ProfileName()] = made.Binder
	return made, nil
}

// available is whether a StorageClass has PersistentVolumes that no claim has, by
// an index that all plugins share.
func (p *Plugins) available(handle fwk.Handle) (func(class string) bool, error) {
	if p.index == nil {
		var err error
		if p.index, err = indexAvailable(handle.SharedInformerFactory().Core().V1().PersistentVolumes().Informer()); err != nil {
			return nil, err
		}
	}
	return p.index, nil
}

func (p *Plugins) binder(profile string) volumebinding.SchedulerVolumeBinder {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.binders[profile]
}
