//go:build platform

package takeover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/test/rounds"
)

const (
	// renewing is how often a kubelet renews its Lease.
	renewing = 10 * time.Second
	// firstPause is how long a kubelet waits after a call of CSI that failed. It doubles.
	firstPause, lastPause = 500 * time.Millisecond, 2*time.Minute + 2*time.Second
)

// kubelet plays the kubelet of one boot of a node.
type kubelet struct {
	n      *node
	ctx    context.Context //nolint:containedctx // it is the life of the machine
	cancel context.CancelFunc
	work   sync.WaitGroup
	mu     sync.Mutex
	pods   map[types.UID]bool
}

func newKubelet(ctx context.Context, n *node) *kubelet {
	k := &kubelet{n: n, pods: map[types.UID]bool{}}
	k.ctx, k.cancel = context.WithCancel(ctx)
	k.work.Go(k.beats)
	k.work.Go(k.brings)
	k.work.Go(k.registers)
	return k
}

// registers registers the driver. An agent that has not been registered is not ready.
func (k *kubelet) registers() {
	_ = k.repeats(func() error {
		conn, err := grpc.NewClient("unix://"+k.n.kept("kubelet", "plugins_registry", v1alpha1.DiskDriverName+"-reg.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer conn.Close()
		driver := registerapi.NewRegistrationClient(conn)
		if _, err := driver.GetInfo(k.ctx, &registerapi.InfoRequest{}); err != nil {
			return err
		}
		_, err = driver.NotifyRegistrationStatus(k.ctx, &registerapi.RegistrationStatus{PluginRegistered: true})
		return err
	})
}

// brings brings the node's processes the authorities.
func (k *kubelet) brings() {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for k.ctx.Err() == nil {
		if there, err := k.n.brings(k.ctx); there && err == nil {
			return
		}
		select {
		case <-k.ctx.Done():
		case <-every.C:
		}
	}
}

// end is the end of the machine.
func (k *kubelet) end() {
	k.cancel()
	k.work.Wait()
}

// beats renews the Leases of the kubelet and of the agent of pools.
func (k *kubelet) beats() {
	every := time.NewTicker(renewing)
	defer every.Stop()
	for {
		for namespace, name := range map[string]string{corev1.NamespaceNodeLease: k.n.name, apitest.Namespace: v1alpha1.AgentLeasePrefix + k.n.name} {
			if err := k.renews(namespace, name); err != nil && k.ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "the kubelet of %s: %v\n", k.n.name, err)
			}
		}
		select {
		case <-k.ctx.Done():
			return
		case <-every.C:
		}
	}
}

// renews renews a Lease as a patch that changes nothing else: the agent of shared disks has an annotation there.
func (k *kubelet) renews(namespace, name string) error {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	err := client.IgnoreAlreadyExists(k.n.env.Client.Create(k.ctx, l.DeepCopy()))
	if err != nil {
		return err
	}
	renewal, err := json.Marshal(map[string]any{"spec": map[string]any{"holderIdentity": k.n.name, "leaseDurationSeconds": 40, "renewTime": metav1.NowMicro()}})
	if err != nil {
		return err
	}
	return k.n.env.Client.Patch(k.ctx, l, client.RawPatch(types.MergePatchType, renewal))
}

// takes starts a pod that is bound to the node, once. reach is told when its volume is staged.
func (k *kubelet) takes(p *corev1.Pod, volume *v1alpha1.Volume, reach func(step string)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil || k.pods[p.UID] {
		return
	}
	k.pods[p.UID] = true
	k.work.Go(func() {
		if err := k.starts(p, volume.Name, reach); err != nil && k.ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "the kubelet of %s cannot start pod %s: %v\n", k.n.name, p.UID, err)
		}
	})
}

func (k *kubelet) starts(p *corev1.Pod, volume string, reach func(step string)) error {
	conn, err := k.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	calls := csi.NewNodeClient(conn)
	stage, target := k.paths(p, volume)
	if err := errors.Join(os.MkdirAll(stage, 0o750), os.MkdirAll(filepath.Dir(target), 0o750)); err != nil {
		return err
	}
	raw := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	}
	if err := k.repeats(func() error {
		_, err := calls.NodeStageVolume(k.ctx, &csi.NodeStageVolumeRequest{VolumeId: volume, StagingTargetPath: stage, VolumeCapability: raw})
		return err
	}); err != nil {
		return err
	}
	reach(rounds.Staged)
	if err := k.repeats(func() error {
		_, err := calls.NodePublishVolume(k.ctx, &csi.NodePublishVolumeRequest{VolumeId: volume, StagingTargetPath: stage, TargetPath: target, VolumeCapability: raw})
		return err
	}); err != nil {
		return err
	}
	return k.writes(p, target)
}

func (k *kubelet) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+k.n.kept("kubelet", "plugins", v1alpha1.DiskDriverName, "csi.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// paths are those at which a kubelet has a raw block volume for a pod.
func (k *kubelet) paths(p *corev1.Pod, volume string) (stage, target string) {
	devices := k.n.kept("kubelet", "plugins", "kubernetes.io", "csi", "volumeDevices")
	return filepath.Join(devices, "staging", volume), filepath.Join(devices, "publish", volume, string(p.UID))
}

// group is the control group of a pod's writer.
func (k *kubelet) group(p *corev1.Pod) (string, error) {
	root, err := pods()
	return filepath.Join(root, k.n.name, string(p.UID), "writer"), err
}

// ends ends a pod, as a kubelet does after its eviction: the writer, then the pod's volume and the pod, and the volume
// on the node. began is told when the writer has ended.
func (k *kubelet) ends(p *corev1.Pod, volume string, began func()) error {
	group, err := k.group(p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(group, "cgroup.kill"), []byte("1"), 0); err != nil {
		return err
	}
	if err := rounds.Until(k.ctx, again, "the writer has ended", func() bool { return os.Remove(group) == nil }); err != nil {
		return err
	}
	began()
	conn, err := k.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	calls := csi.NewNodeClient(conn)
	stage, target := k.paths(p, volume)
	if err := k.repeats(func() error {
		_, err := calls.NodeUnpublishVolume(k.ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: volume, TargetPath: target})
		return err
	}); err != nil {
		return err
	}
	if err := k.n.env.Client.Delete(k.ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID}); err != nil {
		return err
	}
	return k.repeats(func() error {
		_, err := calls.NodeUnstageVolume(k.ctx, &csi.NodeUnstageVolumeRequest{VolumeId: volume, StagingTargetPath: stage})
		return err
	})
}

// repeats makes a call of CSI until it succeeds, with the pauses of a kubelet.
func (k *kubelet) repeats(call func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := call()
		if err == nil || k.ctx.Err() != nil {
			return errors.Join(err, k.ctx.Err())
		}
		fmt.Fprintf(os.Stderr, "the kubelet of %s is told: %v\n", k.n.name, err)
		select {
		case <-k.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// writes runs the pod's writer, in a control group of its own.
func (k *kubelet) writes(p *corev1.Pod, device string) error {
	group, err := k.group(p)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(group, 0o755); err != nil { //nolint:gosec // as all control groups
		return err
	}
	read, out := io.Pipe()
	go func() {
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			k.n.heard.Hear(lines.Text())
		}
	}()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil {
		return nil
	}
	_, err = k.n.start(out, "env", "POD_UID="+string(p.UID), "sh", "-euc", `echo 0 >"$1/cgroup.procs"; exec "$2" -device "$3"`, "sh", group, *writer, device)
	return err
}
