//go:build platform

package takeover

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/test/rounds"
)

// node is a machine with Berth on it.
type node struct {
	machine
	env     *apitest.Environment
	heard   *rounds.Heard
	suspect func(node string, at time.Time)
	// kubelet is the one of this boot.
	kubelet *kubelet
	// controller runs here, nil if none does. since is when it began.
	controller *exec.Cmd
	since      time.Time
}

// account writes a file by which a process reaches the API server.
func (n *node) account(t testing.TB, process string, from *rest.Config) (path string) {
	t.Helper()
	path = n.lost(process + ".kubeconfig")
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: from.Host, CertificateAuthorityData: from.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: from.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// boots powers the machine on and starts what runs on it.
func (n *node) boots(t testing.TB) error {
	t.Helper()
	if err := errors.Join(n.powerOn(), n.registers(t.Context())); err != nil {
		return err
	}
	group, err := pods()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(group, n.name), 0o755); err != nil { //nolint:gosec // as all control groups
		return err
	}
	agent, guard := n.account(t, "agent", n.env.AgentConfig(t, n.name)), n.account(t, "guard", n.env.GuardConfig(t, n.name))
	// Certificates outlive a boot here: a node that boots each minute would soon have to wait for the next ones.
	asked := func(port string) []string {
		return []string{"--peer-address=:" + port, "--peer-dir=" + n.kept("peers"), "--peer-authorities=" + n.authorities()}
	}
	for process, args := range map[string][]string{
		"guard": append(asked("9812"), "guard", "--kubeconfig="+guard, "--socket="+n.lost("guard.sock"), "--watchdog="+n.lost("none"),
			"--pods-cgroup=/"+groups+"/"+n.name),
		"agent": append(asked("9811"), "agent", "--driver=disk", "--kubeconfig="+agent, "--http-address=:9813", "--kubelet-dir="+n.kept("kubelet"),
			"--guard-socket="+n.lost("guard.sock"), "--simulated-disks="+disks()),
	} {
		out, err := n.log(process)
		if err != nil {
			return err
		}
		if _, err := n.start(out, append([]string{*berth, "--log-level=" + *logLevel, "--namespace=" + apitest.Namespace}, args...)...); err != nil {
			return err
		}
	}
	n.kubelet = newKubelet(context.WithoutCancel(t.Context()), n) // it ends with the node
	return nil
}

// registers makes the Node, as the kubelet does, and the StorageNode.
func (n *node) registers(ctx context.Context) error {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	of := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: v1alpha1.DiskDriverName, NodeID: n.name, TopologyKeys: []string{v1alpha1.TopologyKey}},
	}}}
	// The agent of pools would look at the disks of this machine, so it is played, too.
	storage := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	for _, object := range []client.Object{o, of, storage} {
		if err := client.IgnoreAlreadyExists(n.env.Client.Create(ctx, object)); err != nil {
			return err
		}
	}
	if err := n.env.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	if len(o.Spec.Taints) > 0 { // the API server makes each Node with one, which a controller of Kubernetes takes off
		o.Spec.Taints = nil
		if err := n.env.Client.Update(ctx, o); err != nil {
			return err
		}
	}
	now := metav1.Now()
	o.Status.NodeInfo.BootID, o.Status.NodeInfo.SystemUUID = n.boot, n.name
	o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "KubeletReady"}}
	return n.env.Client.Status().Update(ctx, o)
}

// authorities is the file with the ConfigMap that controllers write.
func (n *node) authorities() string { return n.kept("ca.crt") }

// brings makes that file, once the ConfigMap is there.
func (n *node) brings(ctx context.Context) (there bool, err error) {
	known := &corev1.ConfigMap{}
	err = n.env.Client.Get(ctx, client.ObjectKey{Namespace: apitest.Namespace, Name: "berth-authorities"}, known)
	if text := known.Data["ca.crt"]; err == nil && text != "" {
		return true, os.WriteFile(n.authorities(), []byte(text), 0o600)
	}
	return false, client.IgnoreNotFound(err)
}

// controls starts a controller on the machine.
func (n *node) controls(t testing.TB) error {
	t.Helper()
	file, err := n.log("controller")
	if err != nil {
		return err
	}
	account := n.account(t, "controller", n.env.ControllerConfig(t))
	read, out := io.Pipe()
	go n.listens(io.TeeReader(read, file))
	n.since = time.Now()
	n.controller, err = n.start(out, *berth, "--log-level="+*logLevel, "controller", "--driver=disk", "--namespace="+apitest.Namespace, "--kubeconfig="+account,
		"--sign-for=berth", "--csi-socket="+n.lost("controller.sock"), "--http-address=:8081", "--simulated-cloud="+cloudSocket())
	return err
}

// listens reads what a controller says of nodes.
func (n *node) listens(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Msg, Node string }
		if bytes.Contains(lines.Bytes(), []byte(suspicion)) && json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == suspicion {
			n.suspect(line.Node, time.Now())
		}
	}
}

// suspicion is what a controller says when it suspects a node.
const suspicion = "node looks lost"

// resigns ends the controller on the machine.
func (n *node) resigns() error {
	c := n.controller
	n.controller = nil
	return end(c)
}

// loses is the loss of the node's power. It returns when that was.
func (n *node) loses() (time.Time, error) {
	n.kubelet.end()
	at, err := n.powerOff()
	n.kubelet, n.controller = nil, nil
	if err != nil {
		err = fmt.Errorf("the loss of %s: %w", n.name, err)
	}
	return at, err
}
