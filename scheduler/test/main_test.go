package test

import (
	"testing"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/scheduler/internal/controlplane"
)

func TestMain(m *testing.M) {
	controlplane.RunScheduler()
	apitest.Main(m, withGroups...)
}
