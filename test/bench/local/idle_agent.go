package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

const (
	nodeName  = "bench"
	namespace = "berth-system"
	className = "bench"
	groupName = "vg-bench"
)

// idleAgent measures the resources that an agent process uses on a node with volumes, beside
// a real API server. Its disks are in this process, behind poold's socket.
func (r *results) idleAgent(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "bench-local-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kubelet, socket := filepath.Join(dir, "kubelet"), filepath.Join(dir, "poold.sock")
	if err := os.MkdirAll(filepath.Join(kubelet, "plugins_registry"), 0o700); err != nil {
		return err
	}
	progress("an API server")
	return withServer(ctx, r.options, dir, func(ctx context.Context, s server) error {
		r.server = s.version
		return withMemory(ctx, socket, func(ctx context.Context) error {
			argv := []string{
				filepath.Join(r.root, "bin", "berth"), "agent", "--node-name", nodeName, "--namespace", namespace, "--kubeconfig", s.kubeconfig,
				"--kubelet-dir", kubelet, "--poold", "unix://" + socket, "--http-address", "127.0.0.1:0",
			}
			return withProgram(ctx, argv, func(ctx context.Context, pid int) (err error) {
				if err := s.populate(ctx, r.idleVolumes); err != nil {
					return err
				}
				r.agent, err = observe(ctx, pid, r.idleVolumes, r.idleFor)
				return err
			})
		})
	})
}

// withMemory calls do while poold serves a volume group in memory.
func withMemory(ctx context.Context, socket string, do func(context.Context) error) error {
	pool := memory.PoolConfig{PoolRef: provision.PoolRef{Type: provision.LVM, Name: groupName}, Total: 1 << 40}
	disks := memory.NewDisks(pool)
	node := poold.NewLocal(memory.New(disks, nil), mountmemory.New(disks))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return poold.Run(ctx, poold.Config{Socket: socket, Node: node}) })
	work.Go(func() error {
		defer stop()
		client, err := dial(ctx, socket)
		if err != nil {
			return err
		}
		defer client.Close()
		return do(ctx)
	})
	return work.Wait()
}

// populate makes the objects of a node with volumes, and waits until its agent has
// carved them all.
func (s server) populate(ctx context.Context, volumes int) error {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}},
		&v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: className}, Spec: v1alpha1.PoolClassSpec{
			Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{groupName}},
		}},
		&storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: className}, Provisioner: v1alpha1.LocalDriverName,
			Parameters: map[string]string{"poolClass": className},
		},
	}
	for n := range volumes {
		objects = append(objects, volume(n))
	}
	for _, o := range objects {
		if err := s.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	var failed error
	err := until(ctx, "the agent has carved all volumes", func() bool {
		var all v1alpha1.VolumeList
		if failed = s.List(ctx, &all); failed != nil {
			return true
		}
		return ready(all.Items) == volumes
	})
	if failed != nil {
		return fmt.Errorf("listing volumes: %w", failed)
	}
	return err
}

// volume returns a Volume as the controller makes it for the node.
func volume(n int) *v1alpha1.Volume {
	return &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.VolumeName(fmt.Sprintf("idle-%d", n)), Finalizers: []string{v1alpha1.VolumeFinalizer},
			Labels: map[string]string{v1alpha1.ReplicaLabel(nodeName): ""},
		},
		Spec: v1alpha1.VolumeSpec{
			Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4,
			PoolClass: className, Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementNode,
			Replication: v1alpha1.Replication{Factor: 1},
			Replicas:    []v1alpha1.ReplicaSpec{{Node: nodeName, Pool: groupName}},
		},
	}
}

func ready(volumes []v1alpha1.Volume) (n int) {
	for _, v := range volumes {
		if len(v.Status.Replicas) == 1 && v.Status.Replicas[0].Ready {
			n++
		}
	}
	return n
}
