package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/scheduler/internal/binding"
)

func plugins(preBind ...string) *config.Plugins {
	set := func(list ...string) config.PluginSet {
		var s config.PluginSet
		for _, name := range list {
			s.Enabled = append(s.Enabled, config.Plugin{Name: name})
		}
		return s
	}
	return &config.Plugins{PreFilter: set(Name), Filter: set(Name), Reserve: set(Name), PreBind: set(preBind...)}
}

func TestOrdersThatWouldNotWorkAreRefused(t *testing.T) {
	withoutFilter := plugins(Name, binding.Name)
	withoutFilter.Filter = config.PluginSet{}
	tests := map[string]struct {
		plugins *config.Plugins
		why     string // empty: it is fine
	}{
		"Berth before its VolumeBinding":                {plugins: plugins(Name, binding.Name)},
		"others before, between and after":              {plugins: plugins(names.DynamicResources, Name, "Other", binding.Name, "Last")},
		"Berth after its VolumeBinding":                 {plugins: plugins(binding.Name, Name), why: "must come before"},
		"Berth without PreBind":                         {plugins: plugins(binding.Name), why: "must come before"},
		"kube-scheduler's VolumeBinding beside Berth's": {plugins: plugins(Name, binding.Name, names.VolumeBinding), why: "disable VolumeBinding"},
		"no VolumeBinding at all":                       {plugins: plugins(Name), why: "enable BerthVolumeBinding"},
		"Berth without Filter":                          {plugins: withoutFilter, why: "not enabled at filter"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkOrder("berth-scheduler", test.plugins)
			if (err == nil) != (test.why == "") || err != nil && !strings.Contains(err.Error(), test.why) {
				t.Errorf("got %v, want an error with %q", err, test.why)
			}
		})
	}
}

func TestAWrongOrderKeepsTheSchedulerFromStarting(t *testing.T) {
	wrong := errors.New("wrong order")
	p := &Plugin{Order: func() error { return wrong }}
	if _, err := p.EventsToRegister(context.WithoutCancel(t.Context())); !errors.Is(err, wrong) {
		t.Errorf("got %v, want the order's error", err)
	}
}
