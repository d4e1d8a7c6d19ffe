package plugin

import (
	"fmt"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/scheduler/internal/binding"
)

// Order returns a check of the handle's profile. It reads the plugins that the
// framework has built and not the configuration: the rules of defaulting and
// merging may change.
func Order(handle fwk.Handle) func() error {
	return func() error {
		profile, ok := handle.(interface{ ListPlugins() *config.Plugins })
		if !ok {
			return fmt.Errorf("checking the order of plugins: a %T cannot list them", handle)
		}
		return checkOrder(handle.ProfileName(), profile.ListPlugins())
	}
}

// checkOrder refuses a profile in which room would be promised twice or a node be
// told to the provisioner before the Volume is placed there.
func checkOrder(profile string, plugins *config.Plugins) error {
	order := enabled(plugins.PreBind)
	ours, theirs := slices.Index(order, Name), slices.Index(order, binding.Name)
	switch {
	case slices.Contains(order, names.VolumeBinding):
		return fmt.Errorf("profile %q: disable %s in multiPoint, %s is in its place", profile, names.VolumeBinding, binding.Name)
	case theirs < 0:
		return fmt.Errorf("profile %q: enable %s in multiPoint, in the place of %s", profile, binding.Name, names.VolumeBinding)
	case ours < 0 || ours > theirs:
		return fmt.Errorf("profile %q: %s must come before %s among the preBind plugins, whose order is %v: list them so in preBind.enabled",
			profile, Name, binding.Name, order)
	}
	for phase, set := range map[string]config.PluginSet{
		"preFilter": plugins.PreFilter, "filter": plugins.Filter, "reserve": plugins.Reserve,
	} {
		if !slices.Contains(enabled(set), Name) {
			return fmt.Errorf("profile %q: %s is not enabled at %s: enable it in multiPoint, and disable it nowhere", profile, Name, phase)
		}
	}
	return nil
}

func enabled(set config.PluginSet) []string {
	list := make([]string, 0, len(set.Enabled))
	for _, p := range set.Enabled {
		list = append(list, p.Name)
	}
	return list
}
