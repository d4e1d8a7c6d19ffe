package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"
)

const chartConfiguration = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: berth-scheduler
    plugins: {multiPoint: {disabled: [{name: VolumeBinding}], enabled: [{name: Berth}, {name: BerthVolumeBinding}]}}
    pluginConfig: [{name: Berth, args: {strategy: Spread}}]
`

func TestConfigurationsDifferOnlyInTheComparedFeature(t *testing.T) {
	has := func(t *testing.T, p profile, batching bool) (words []string) {
		t.Helper()
		text, err := configuration(chartConfiguration, p, batching, "http://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		var content struct {
			Profiles []map[string]any `json:"profiles"`
		}
		if err := sigsyaml.Unmarshal([]byte(text), &content); err != nil {
			t.Fatal(err)
		}
		if len(content.Profiles) != 1 || content.Profiles[0]["schedulerName"] != schedulerName {
			t.Fatalf("profiles are %v, want one for the same pods", content.Profiles)
		}
		for _, word := range []string{"Berth", "PodTopologySpread", "nodeCacheCapable: false"} {
			if strings.Contains(text, word) {
				words = append(words, word)
			}
		}
		return words
	}
	for name, tt := range map[string]struct {
		profile  profile
		batching bool
		want     []string
	}{
		"the stock scheduler has nothing":             {stock, false, nil},
		"the plugin comes from the chart":             {plugin, false, []string{"Berth"}},
		"the extender is sent whole nodes":            {extended, false, []string{"nodeCacheCapable: false"}},
		"batching needs the spread's defaults off":    {stock, true, []string{"PodTopologySpread"}},
		"and the plugin's own arguments stay with it": {plugin, true, []string{"Berth", "PodTopologySpread"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := has(t, tt.profile, tt.batching)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	text, err := configuration(chartConfiguration, plugin, true, "")
	if err != nil || !strings.Contains(text, "strategy: Spread") {
		t.Errorf("the plugin's arguments are lost: %v\n%s", err, text)
	}
}

func TestAChartThatCannotBeReadIsAnError(t *testing.T) {
	for _, text := range []string{"profiles: [", "profiles: []"} {
		if got, err := configuration(text, plugin, true, ""); err == nil {
			t.Errorf("%q gives\n%s", text, got)
		}
	}
}
