// Command berth-scheduler is kube-scheduler with Berth's plugins compiled in. Its
// flags and its configuration are kube-scheduler's.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"berth.dev/berth/scheduler/internal/binding"
)

func main() {
	command := app.NewSchedulerCommand(
		app.WithPlugin(binding.Name, binding.New),
	)
	command.Use = "berth-scheduler"
	os.Exit(cli.Run(command))
}
