package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
)

// nativeState is the directory of the cluster that this benchmark makes. It is never
// the one that people work with.
const nativeState = "/var/lib/berth-lab-bench"

// variant is one kind of pod that is measured.
type variant struct{ class, scheduler string }

// variants are measured in turn.
var variants = []variant{
	{"", ""}, {"berth-ext4", ""}, {"berth-xfs", ""},
	{"", berthScheduler}, {"berth-ext4", berthScheduler}, {"berth-xfs", berthScheduler},
}

const berthScheduler = "berth-scheduler"

// by has a scheduler place the pod. An empty name means Kubernetes' own scheduler.
func by(scheduler string) cluster.PodOption {
	return func(p *corev1.Pod) { p.Spec.SchedulerName = scheduler }
}

// nativeResults are timelines by variant.
type nativeResults struct {
	lines map[variant][]timeline
	node  corev1.NodeSystemInfo
	load  [2]string // of the machine, before and after
}

// runNative makes a cluster, measures, writes the results and takes the cluster
// down, also when something fails.
func runNative(ctx context.Context, o options) (err error) {
	if err := errors.Join(goAhead(), os.Setenv("BERTH_LAB_STATE", nativeState), os.Unsetenv("KUBECONFIG")); err != nil {
		return err
	}
	lab, err := cluster.FindLab()
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, downErr := lab.Output(ctx, "down")
		err = errors.Join(err, downErr)
	}()
	c, err := nativeCluster(ctx, lab)
	if err != nil {
		return err
	}
	r := nativeResults{lines: map[variant][]timeline{}}
	if err := r.measure(ctx, c, o); err != nil {
		return err
	}
	return r.write(o)
}

// nativeCluster is one node with Berth, and with the stand-in for LVM in the
// node and in the agent's image.
func nativeCluster(ctx context.Context, lab cluster.Lab) (*cluster.Cluster, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	cfg := install.Config{Root: root, Log: os.Stderr, Set: []string{install.Scheduler, "agent.image.tag=native", install.WithoutSnapshots}}
	args, err := cfg.Up(ctx, lab)
	if err != nil {
		return nil, err
	}
	args = append(args, "--native", "--nodes", "1", "--disks", "1", "--disk-size", "50G",
		"--image", filepath.Join(root, "bin", "images", "agent-native.tar"))
	up := exec.CommandContext(ctx, lab.Path(), args...)
	up.Stdout, up.Stderr = os.Stderr, os.Stderr
	if err := up.Run(); err != nil {
		return nil, fmt.Errorf("starting the cluster: %w", err)
	}
	if err := cfg.LoadImages(ctx, lab); err != nil {
		return nil, err
	}
	if err := letAhead(ctx, lab); err != nil {
		return nil, err
	}
	if err := putStandIn(ctx, lab, filepath.Join(root, "bin", "lvm-stand-in")); err != nil {
		return nil, err
	}
	if err := cfg.MakeVolumeGroups(ctx, lab); err != nil {
		return nil, err
	}
	return installed(ctx, lab, cfg)
}

// putStandIn makes the stand-in the node's LVM, for commands that an administrator runs there.
func putStandIn(ctx context.Context, lab cluster.Lab, program string) error {
	const place = "/usr/local/sbin/lvm"
	source, err := os.Open(program)
	if err != nil {
		return err
	}
	defer source.Close()
	put := exec.CommandContext(ctx, lab.Path(), "exec", "-i", firstNode, "--", "tee", place)
	put.Stdin, put.Stderr = source, os.Stderr
	if err := put.Run(); err != nil {
		return fmt.Errorf("copying %s into the node: %w", program, err)
	}
	for _, argv := range [][]string{
		{"chmod", "755", place}, {"ln", "-s", place, "/usr/local/sbin/vgs"}, {"ln", "-s", place, "/usr/local/sbin/vgcreate"},
	} {
		if _, err := lab.OnNode(ctx, firstNode, argv...); err != nil {
			return err
		}
	}
	return nil
}

func installed(ctx context.Context, lab cluster.Lab, cfg install.Config) (*cluster.Cluster, error) {
	c, err := cluster.Connect(ctx)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := lab.Output(ctx, "kubeconfig")
	if err != nil {
		return nil, err
	}
	if err := cfg.Chart(ctx, kubeconfig); err != nil {
		return nil, err
	}
	if err := install.MakePoolClass(ctx, c); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return c, cfg.Await(ctx, c)
}

// measure makes pods one after the other, the variants in turn, so that disturbances
// of the machine hit all variants alike. The first round is not counted.
func (r *nativeResults) measure(ctx context.Context, c *cluster.Cluster, o options) error {
	var seen results
	if err := seen.look(ctx, c, o); err != nil {
		return err
	}
	r.node, r.load[0] = seen.node, loadAverage()
	err := inNamespace(ctx, c, func(ns string) error {
		rec, stop, err := record(ctx, c, ns)
		if err != nil {
			return err
		}
		defer stop()
		for i := range o.runs + 1 {
			for j, v := range variants {
				line, err := once(ctx, c, rec, ns, fmt.Sprintf("run-%d-%d", i, j), v)
				if err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "round %d of %d, %s:%s\n", i, o.runs, v.title(), line.journey())
				if i > 0 {
					r.lines[v] = append(r.lines[v], line)
				}
			}
		}
		return nil
	})
	r.load[1] = loadAverage()
	return err
}
