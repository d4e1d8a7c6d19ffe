package binding

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Name of the plugin.
const Name = "BerthVolumeBinding"

// Plugin is VolumeBinding with another Binder. It filters and scores no nodes where
// all are alike.
type Plugin struct {
	*volumebinding.VolumeBinding

	nodes     fwk.SharedLister
	claims    corelisters.PersistentVolumeClaimLister
	classes   storagelisters.StorageClassLister
	available func(class string) bool
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

// Name of the plugin, which differs from the name of the one inside.
func (*Plugin) Name() string { return Name }

// New makes the plugin. Its arguments are those of VolumeBinding; available tells
// whether a StorageClass has PersistentVolumes that no claim has.
func New(ctx context.Context, arguments runtime.Object, handle fwk.Handle, available func(class string) bool) (*Plugin, error) {
	args, err := decode(arguments)
	if err != nil {
		return nil, err
	}
	if err := MaskCapacity(handle.SharedInformerFactory()); err != nil {
		return nil, err
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	made, err := volumebinding.New(ctx, args, handle, features)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", volumebinding.Name, err)
	}
	inner, ok := made.(*volumebinding.VolumeBinding)
	if !ok {
		return nil, fmt.Errorf("making %s: got a %T", volumebinding.Name, made)
	}
	timeout := time.Duration(args.BindTimeoutSeconds) * time.Second
	inner.Binder, err = NewBinder(inner.Binder, handle.ClientSet(), handle.SharedInformerFactory(), timeout)
	if err != nil {
		return nil, err
	}
	return &Plugin{
		VolumeBinding: inner,
		nodes:         handle.SnapshotSharedLister(),
		claims:        handle.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister(),
		classes:       handle.SharedInformerFactory().Storage().V1().StorageClasses().Lister(),
		available:     available,
	}, nil
}

// decode reads the arguments and fills in upstream's defaults. The framework does
// so only for the plugins it knows.
func decode(arguments runtime.Object) (*config.VolumeBindingArgs, error) {
	var given configv1.VolumeBindingArgs
	if err := frameworkruntime.DecodeInto(arguments, &given); err != nil {
		return nil, fmt.Errorf("reading the arguments of %s: %w", Name, err)
	}
	scheme.Scheme.Default(&given)
	var args config.VolumeBindingArgs
	if err := scheme.Scheme.Convert(&given, &args, nil); err != nil {
		return nil, fmt.Errorf("reading the arguments of %s: %w", Name, err)
	}
	return &args, nil
}
