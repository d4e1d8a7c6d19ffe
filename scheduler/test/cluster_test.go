package test

import (
	"testing"
	"time"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/scheduler/internal/controlplane"
)

const gi = controllertest.Gi

// cluster is a bench with every process that takes part in scheduling a pod.
type cluster struct {
	*bench
	programs    controlplane.Programs
	controller  *controllertest.Process
	provisioner *controlplane.Process
	config      string // of the scheduler
	scheduler   *controlplane.Process
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := withoutScheduler(t)
	c.config = c.installScheduler(t)
	c.startScheduler(t)
	return c
}

// withoutScheduler is a cluster to which the test adds schedulers of its own.
func withoutScheduler(t *testing.T, options ...controllertest.Option) *cluster {
	t.Helper()
	e := apitest.Start(t)
	c := &cluster{programs: controlplane.Programs{Dir: t.TempDir(), Kubeconfig: kubeconfig(t, e.Config)}, bench: newBench(t, e)}
	manager, err := c.programs.ControllerManager()
	run(t, manager, err)
	c.startController(t, options...)
	t.Cleanup(func() { c.clean(t) })
	return c
}

// startController starts the processes of the controller's pod.
func (c *cluster) startController(t *testing.T, options ...controllertest.Option) {
	t.Helper()
	c.controller = controllertest.Start(t, c.Environment, options...)
	provisioner, err := c.programs.Provisioner(c.controller.Socket)
	c.provisioner = run(t, provisioner, err)
}

// stopController ends all processes of the pod.
func (c *cluster) stopController(t *testing.T) {
	t.Helper()
	c.provisioner.Kill()
	c.controller.Stop(t)
}

func (c *cluster) startScheduler(t *testing.T) {
	t.Helper()
	scheduler, err := c.programs.Scheduler(c.config, "--secure-port=0")
	c.scheduler = run(t, scheduler, err)
}

// patience is how long a test waits for something before it counts as missing.
const patience = 40 * time.Second
