package install

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// Namespace is where Berth is installed.
const Namespace = "berth-system"

// VolumeGroup is made on every node, of its first data disk.
const VolumeGroup = "vg0"

// Config says how to install.
type Config struct {
	// Root of the repository.
	Root string
	// Log receives the output of the tools.
	Log io.Writer
	// Set are further values for the chart, such as "agent.poold=separate".
	Set []string
}

// controlNode is where the lab's values pin the controller and the schedulers: it is as
// fast as the machine, and the emulated nodes have enough to do.
const controlNode = "control"

// Scheduler is the value that also installs berth-scheduler.
const Scheduler = "scheduler.enabled=true"

// images are the archives that the nodes need.
type images struct{ everywhere, control []string }

func (c Config) images(ctx context.Context, lab cluster.Lab) (images, error) {
	list, err := lab.Output(ctx, "images")
	if err != nil {
		return images{}, err
	}
	paths := map[string]string{}
	for line := range strings.Lines(list) {
		if ref, path, found := strings.Cut(strings.TrimSpace(line), " "); found {
			paths[ref] = path
		}
	}
	own := filepath.Join(c.Root, "bin", "images")
	all := images{
		everywhere: []string{paths[cluster.Image], filepath.Join(own, "agent.tar")},
		control:    []string{filepath.Join(own, "controller.tar")},
	}
	for ref, path := range paths {
		if strings.HasPrefix(ref, "localhost/csi-") || strings.HasPrefix(ref, snapshotControllerImage) {
			all.control = append(all.control, path)
		}
	}
	if slices.Contains(c.Set, Scheduler) {
		all.control = append(all.control, filepath.Join(own, "scheduler.tar"))
	}
	return all, nil
}

// Up returns the arguments of the lab's command that brings a cluster up. It has a node for
// the controller, and its nodes have the images that all of them need from the start. The
// lab leaves a cluster that is up already as it is: see LoadImages.
func (c Config) Up(ctx context.Context, lab cluster.Lab) ([]string, error) {
	all, err := c.images(ctx, lab)
	if err != nil {
		return nil, err
	}
	args := []string{"up", "--control"}
	for _, path := range all.everywhere {
		args = append(args, "--image", path)
	}
	return args, nil
}

// LoadImages puts the images into the nodes that run them, unless they have them already.
func (c Config) LoadImages(ctx context.Context, lab cluster.Lab) error {
	all, err := c.images(ctx, lab)
	if err != nil {
		return err
	}
	if _, err := lab.Output(ctx, append([]string{"load"}, all.everywhere...)...); err != nil {
		return err
	}
	_, err = lab.Output(ctx, append([]string{"load", "--node", controlNode}, all.control...)...)
	return err
}

// Node is one of the lab's nodes that have disks.
type Node struct {
	Name    string `json:"name"`
	Control bool   `json:"control"`
	// Disks are its data disks, by the path of their device on the node.
	Disks []struct {
		Device string `json:"device"`
	} `json:"disks"`
}

// Nodes asks the lab for its nodes that have disks: all but the one for the controller.
func Nodes(ctx context.Context, lab cluster.Lab) ([]Node, error) {
	out, err := lab.Output(ctx, "status", "-o", "json")
	if err != nil {
		return nil, err
	}
	var status struct {
		Nodes []Node `json:"nodes"`
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return nil, fmt.Errorf("reading the lab's status: %w", err)
	}
	return slices.DeleteFunc(status.Nodes, func(n Node) bool { return n.Control }), nil
}

// MakeVolumeGroups makes the volume group on each node that lacks it. A native node has no LVM if this
// machine has none: tests of other pools need no group there.
func (c Config) MakeVolumeGroups(ctx context.Context, lab cluster.Lab) error {
	nodes, err := Nodes(ctx, lab)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		program, err := lab.OnNode(ctx, n.Name, "sh", "-c", "command -v vgcreate || true")
		if err != nil {
			return err
		}
		if program == "" {
			continue
		}
		groups, err := lab.OnNode(ctx, n.Name, "vgs", "--noheadings", "-o", "vg_name")
		if err != nil {
			return err
		}
		if strings.Contains(groups, VolumeGroup) {
			continue
		}
		if len(n.Disks) == 0 {
			return fmt.Errorf("node %s has no data disk: start the lab with --disks 2", n.Name)
		}
		if _, err := lab.OnNode(ctx, n.Name, "vgcreate", VolumeGroup, n.Disks[0].Device); err != nil {
			return err
		}
	}
	return nil
}

// Chart installs or upgrades the charts of Berth and of its classes.
func (c Config) Chart(ctx context.Context, kubeconfig string) error {
	values, err := c.values()
	if err != nil {
		return err
	}
	if err := c.helm(ctx, kubeconfig, "berth", "values.yaml", values); err != nil {
		return err
	}
	return c.helm(ctx, kubeconfig, "berth-classes", "classes.yaml", nil)
}

// helm installs or upgrades a chart with a file of the lab's values, and further ones.
func (c Config) helm(ctx context.Context, kubeconfig, chart, file string, values []string) error {
	args := []string{"upgrade", "--install", chart, filepath.Join(c.Root, "charts", chart),
		"--kubeconfig", kubeconfig, "--namespace", Namespace, "--create-namespace",
		"--values", filepath.Join(c.Root, "test", "lab", file)}
	for _, s := range values {
		args = append(args, "--set", s)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.Root, "bin", "helm"), args...)
	cmd.Stdout, cmd.Stderr = c.Log, c.Log
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+filepath.Join(c.Root, "bin", "helm-cache"))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("installing chart %s: %w", chart, err)
	}
	return nil
}

// MakePoolClass makes the class over the nodes' volume group that the lab's StorageClasses
// name.
func MakePoolClass(ctx context.Context, c *cluster.Cluster) error {
	class := cluster.PoolClass("disks", VolumeGroup)
	class.Spec.InlineVolumes = &v1alpha1.InlineVolumes{Namespaces: []string{v1alpha1.EveryNamespace}}
	return client.IgnoreAlreadyExists(c.Create(ctx, class))
}

// Await waits until every agent and all other installed parts are ready, and
// every node has its driver.
func (c Config) Await(ctx context.Context, on *cluster.Cluster) error {
	deployments := []string{"berth-controller"}
	if slices.Contains(c.Set, Scheduler) {
		deployments = append(deployments, "berth-scheduler")
	}
	if c.extended() {
		deployments = append(deployments, ExtendedScheduler)
	}
	for _, name := range deployments {
		if err := awaitDeployment(ctx, on, Namespace, name); err != nil {
			return err
		}
	}
	if c.snapshots() {
		if err := awaitDeployment(ctx, on, metav1.NamespaceSystem, snapshotController); err != nil {
			return err
		}
	}
	return awaitNodes(ctx, on)
}

func awaitDeployment(ctx context.Context, on *cluster.Cluster, namespace, name string) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return cluster.Await(ctx, on, d, "ready", ready)
}

func ready(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == d.Status.Replicas &&
		d.Status.ReadyReplicas == d.Status.Replicas && d.Status.Replicas > 0
}

func awaitNodes(ctx context.Context, c *cluster.Cluster) error {
	nodes, err := Nodes(ctx, c.Lab)
	if err != nil {
		return err
	}
	agents := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "berth-agent"}}
	err = cluster.Await(ctx, c, agents, "ready", func(d *appsv1.DaemonSet) bool {
		return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedNumberScheduled == int32(len(nodes)) && d.Status.NumberReady == int32(len(nodes))
	})
	if err != nil {
		return err
	}
	for _, n := range nodes {
		csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		if err := cluster.Await(ctx, c, csi, "registered", registered); err != nil {
			return err
		}
	}
	return nil
}

func registered(n *storagev1.CSINode) bool {
	for _, d := range n.Spec.Drivers {
		if d.Name == "local.berth.dev" {
			return true
		}
	}
	return false
}
