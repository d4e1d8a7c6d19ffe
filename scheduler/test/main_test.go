package test

import (
	"testing"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/scheduler/internal/controlplane"
)

func TestMain(m *testing.M) {
	controlplane.RunScheduler()
	// Groups of pods are beta and off. Here they are on, for the schedulers that are
	// told so; to all others it makes no difference.
	apitest.Main(m, apitest.WithFlag("feature-gates", groups), apitest.WithFlag("runtime-config", "scheduling.k8s.io/v1beta1=true"))
}
