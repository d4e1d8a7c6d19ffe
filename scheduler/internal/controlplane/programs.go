package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"

	"berth.dev/berth/scheduler/internal/command"
)

const (
	// assetsVariable names the directory of Kubernetes' programs.
	assetsVariable = "KUBEBUILDER_ASSETS"
	// provisionerVariable names the external-provisioner's program.
	provisionerVariable = "BERTH_TEST_PROVISIONER"
	// asScheduler in the environment makes a program that calls RunScheduler a
	// scheduler, so that it need not be built first.
	asScheduler = "BERTH_TEST_AS_SCHEDULER"
)

// RunScheduler makes this process a scheduler if it was started as one, and does
// not return then. A program that uses Programs.Scheduler calls it first of all.
func RunScheduler() {
	if os.Getenv(asScheduler) != "" {
		os.Exit(cli.Run(command.New()))
	}
}

// Programs starts the programs of one cluster.
type Programs struct {
	// Dir is where their files go.
	Dir string
	// Kubeconfig is the path of an administrator's connection.
	Kubeconfig string
}

// ControllerManager starts the controllers that claims and volumes need.
func (p Programs) ControllerManager() (*Process, error) {
	return Start(p.Dir, nil, filepath.Join(os.Getenv(assetsVariable), "kube-controller-manager"),
		"--kubeconfig="+p.Kubeconfig, "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false",
		"--controllers=persistentvolume-binder-controller,ephemeral-volume-controller,persistentvolumeclaim-protection-controller,persistentvolume-protection-controller",
		"--kube-api-qps=1000", "--kube-api-burst=1000")
}

// Provisioner starts the external-provisioner beside the driver that serves the
// socket, with the chart's arguments but for their pace.
func (p Programs) Provisioner(socket string) (*Process, error) {
	provisioner := os.Getenv(provisionerVariable)
	if provisioner == "" {
		return nil, errors.New(provisionerVariable + " is not set: export it with the output of `bin/lab binary csi-provisioner`, or use `make test-scheduler`")
	}
	return Start(p.Dir, nil, provisioner, "--kubeconfig="+p.Kubeconfig, "--csi-address="+socket, "--extra-create-metadata",
		"--volume-name-prefix=pvc", "--strict-topology", "--immediate-topology=false", "--timeout=60s",
		"--retry-interval-start=200ms", "--kube-api-qps=1000", "--kube-api-burst=1000")
}

// Scheduler starts berth-scheduler with a file of configuration, which has its
// connection.
func (p Programs) Scheduler(configuration string, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for this program: %w", err)
	}
	return Start(p.Dir, []string{asScheduler + "=1"}, self, append([]string{"--config=" + configuration}, args...)...)
}

// StockScheduler starts kube-scheduler with a file of configuration, which has its
// connection.
func (p Programs) StockScheduler(configuration string, args ...string) (*Process, error) {
	return Start(p.Dir, nil, filepath.Join(os.Getenv(assetsVariable), "kube-scheduler"), append([]string{"--config=" + configuration}, args...)...)
}
