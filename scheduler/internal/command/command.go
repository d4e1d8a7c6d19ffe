package command

import (
	"github.com/spf13/cobra"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the client
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric of the version
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/scheduler/internal/binding"
	"berth.dev/berth/scheduler/internal/plugin"
	"berth.dev/berth/scheduler/internal/wire"
)

// New makes the command. It ends the process when the scheduler cannot go on, as
// kube-scheduler does.
func New() *cobra.Command {
	log.SetLogger(klog.Background())
	plugins := wire.New(func(err error) {
		klog.Background().Error(err, "the scheduler cannot go on")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	})
	command := app.NewSchedulerCommand(
		app.WithPlugin(plugin.Name, plugins.Berth),
		app.WithPlugin(binding.Name, plugins.VolumeBinding),
	)
	command.Use = "berth-scheduler"
	return command
}
