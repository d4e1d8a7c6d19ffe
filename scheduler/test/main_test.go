package test

import (
	"os"
	"testing"

	"k8s.io/component-base/cli"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/scheduler/internal/command"
)

// asScheduler in the environment makes the test's own program a scheduler, so
// that it can be killed and started again without being built first.
const asScheduler = "BERTH_TEST_AS_SCHEDULER"

func TestMain(m *testing.M) {
	if os.Getenv(asScheduler) != "" {
		os.Exit(cli.Run(command.New()))
	}
	apitest.Main(m)
}
