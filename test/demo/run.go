package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
)

// run goes through the demonstration. With the argument "install" it ends when
// Berth is installed.
func run(ctx context.Context, args []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	lab, err := cluster.FindLab()
	if err != nil {
		return err
	}
	s := &steps{out: os.Stderr, clock: time.Now}
	c, err := prepare(ctx, s, lab, install.Config{Root: root, Log: os.Stderr, Set: sets(args)})
	if err != nil {
		return err
	}
	if len(args) > 0 && args[0] == "install" {
		s.table(os.Stdout)
		return nil
	}
	where, err := tour(ctx, s, c)
	if err != nil {
		return err
	}
	fmt.Println()
	s.table(os.Stdout)
	fmt.Println()
	where.print(os.Stdout)
	return nil
}

// sets returns the chart values that were given after "install".
func sets(args []string) []string {
	if len(args) < 2 {
		return nil
	}
	return args[1:]
}

// prepare brings up the lab and installs Berth, as far as they are not there yet.
func prepare(ctx context.Context, s *steps, lab cluster.Lab, cfg install.Config) (*cluster.Cluster, error) {
	err := s.do("Kubernetes with three nodes (make lab-down removes it)", func() error { return up(ctx, lab, cfg) })
	if err != nil {
		return nil, err
	}
	if err := s.do("images into the nodes", func() error { return cfg.LoadImages(ctx, lab) }); err != nil {
		return nil, err
	}
	if err := s.do("a volume group on every node", func() error { return cfg.MakeVolumeGroups(ctx, lab) }); err != nil {
		return nil, err
	}
	c, err := cluster.Connect(ctx)
	if err != nil {
		return nil, err
	}
	err = s.do("Berth from its chart, all parts ready", func() error {
		kubeconfig, err := lab.Output(ctx, "kubeconfig")
		if err != nil {
			return err
		}
		for _, step := range []func(context.Context, *cluster.Cluster) error{
			cfg.MakeExtenderSecrets,
			cfg.MakeSnapshotAPI,
			func(ctx context.Context, _ *cluster.Cluster) error { return cfg.Chart(ctx, kubeconfig) },
			install.MakePoolClass,
			cfg.MakeExtendedScheduler,
		} {
			if err := step(ctx, c); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
		defer cancel()
		return cfg.Await(ctx, c)
	})
	return c, err
}

func up(ctx context.Context, lab cluster.Lab, cfg install.Config) error {
	args, err := cfg.Up(ctx, lab)
	if err != nil {
		return err
	}
	return show(ctx, lab, args...)
}

// show runs a lab command whose progress the user sees.
func show(ctx context.Context, lab cluster.Lab, args ...string) error {
	cmd := exec.CommandContext(ctx, lab.Path(), args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}
