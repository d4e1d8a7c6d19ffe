// Command berth-scheduler is kube-scheduler with Berth's plugins compiled in. Its
// flags and its configuration are kube-scheduler's.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"berth.dev/berth/scheduler/internal/command"
)

func main() { os.Exit(cli.Run(command.New())) }
