package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"berth.dev/berth/internal/controller"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simcloud"
)

// controllerFlags are few on purpose: users decide in PoolClasses.
type controllerFlags struct {
	doorFlags
	driver                    string
	leaderElection, snapshots bool
	attachments               bool
	installation              string
	simulatedCloud            string
	extender                  extenderFlags
}

func newControllerCommand() *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the CSI controller service and the reconcilers",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.csiSocket, "csi-socket", "/csi/csi.sock", "unix socket on which the CSI sidecars connect")
	f.add(flags, ":8081")
	flags.StringVar(&f.driver, "driver", "local", "driver to serve: local for the disks of nodes, disk for shared disks")
	flags.BoolVar(&f.leaderElection, "leader-election", true, "let only one of several controllers run the reconcilers")
	flags.BoolVar(&f.snapshots, "snapshots", false, "announce snapshots, and volumes made from snapshots and volumes; the csi-snapshotter then runs beside this process")
	flags.BoolVar(&f.attachments, "attachments", false, "announce that the controller publishes volumes, for a CSIDriver with attachRequired; the csi-attacher then runs beside this process")
	flags.StringVar(&f.installation, "sign-for", "", "sign certificates of the nodes of the installation whose objects begin with this name, and ask them; empty means neither")
	flags.StringVar(&f.simulatedCloud, "simulated-cloud", "", "for tests and demonstrations only: unix socket of a simulated cloud, whose disks the controller attaches")
	f.extender.add(flags)
	return cmd
}

func (f *controllerFlags) run(ctx context.Context) (err error) {
	serves, err := driver.Named(f.driver)
	if err != nil {
		return fmt.Errorf("--driver: %w", err)
	}
	if f.extender.address != "" && !serves.Pools {
		return errors.New("--extender-address: the extender is served with --driver=local")
	}
	if f.attachments && !serves.Epochs() {
		return errors.New("--attachments: volumes are attached with --driver=disk")
	}
	clouds := map[string]shared.Cloud{}
	if f.simulatedCloud != "" {
		if !serves.Epochs() {
			return errors.New("--simulated-cloud: shared disks are attached with --driver=disk")
		}
		clouds[simcloud.Scheme] = simcloud.Dial(f.simulatedCloud)
	}
	d, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()

	serve, err := f.extender.open(ctx)
	if err != nil {
		return err
	}
	if serve.Listener != nil {
		defer func() { err = errors.Join(err, closed(serve.Listener)) }()
	}

	witness, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this controller among the witnesses: %w", err)
	}
	return controller.Run(ctx, controller.Options{
		Driver:         serves,
		Extender:       serve,
		Snapshots:      f.snapshots,
		Attachments:    f.attachments,
		Clouds:         clouds,
		Nodes:          controller.Nodes{Installation: f.installation, Witness: "controller " + witness},
		Config:         d.cluster,
		Namespace:      f.namespace,
		LeaderElection: f.leaderElection,
		CSI:            d.csi,
		HTTP:           d.http,
		Version:        version,
		Log:            ctrl.Log,
		Clock:          clock.RealClock{},
	})
}
