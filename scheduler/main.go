// Command berth-scheduler is kube-scheduler with Berth's plugins compiled in. Its
// flags and its configuration are kube-scheduler's.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/scheduler/internal/binding"
	"berth.dev/berth/scheduler/internal/plugin"
	"berth.dev/berth/scheduler/internal/wire"
)

func main() {
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
	os.Exit(cli.Run(command))
}
