package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// documentedSnapshot is the snapshot that docs/orphans.md adopts.
const documentedSnapshot = "snap-7d0e3a52-9b1c-4f6e-a2d7-c5b8e1f40396"

// server is a real API server with the cluster that the documentation tells of.
type server struct {
	*testing.T
	*apitest.Environment
	kubeconfig string
}

func serve(t *testing.T) server {
	s := server{T: t, Environment: apitest.Start(t), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	s.must(clientcmd.WriteToFile(kubeconfigOf(s.Config), s.kubeconfig))
	s.must(client.IgnoreAlreadyExists(s.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim.Spec.StorageClassName = new("local")
	bound := claim.DeepCopy()
	bound.Name, bound.Spec.StorageClassName, bound.Spec.VolumeName = "demo", new(""), "demo"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "hunter2canary"}}}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "web"}}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: "canary"}, StringData: map[string]string{"key": "hunter2canary"}}
	for _, o := range []client.Object{claim, bound, pod, secret} {
		s.must(client.IgnoreAlreadyExists(s.Client.Create(t.Context(), o)))
	}
	return s
}

func (s server) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func kubeconfigOf(c *rest.Config) clientcmdapi.Config {
	return clientcmdapi.Config{
		CurrentContext: "test",
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test", Namespace: "shop"}},
	}
}

// restore makes the cluster as the documentation finds it: node-3 has a volume and a snapshot that
// lost their objects.
func (s server) restore() {
	s.Helper()
	for _, list := range []client.ObjectList{&v1alpha1.VolumeList{}, &v1alpha1.SnapshotList{}, &corev1.PersistentVolumeList{}} {
		s.clear(list)
	}
	agent := s.Agent(s.T, "node-3")
	s.must(client.IgnoreAlreadyExists(agent.Create(s.Context(), &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "node-3"}})))
	n := &v1alpha1.StorageNode{}
	s.must(s.Client.Get(s.Context(), client.ObjectKey{Name: "node-3"}, n))
	n.Spec.Forget = nil
	s.must(s.Client.Update(s.Context(), n))
	since := metav1.Unix(1700000000, 0)
	n.Status.Features = v1alpha1.AllFeatures()
	n.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReporting, LastTransitionTime: since}}
	orphan := func(source, claim string) *v1alpha1.Orphan {
		return &v1alpha1.Orphan{Since: since, Reason: v1alpha1.OrphanNoObject, Size: resource.MustParse("1Gi"), Filesystem: "ext4", Source: source, Claim: claim}
	}
	n.Status.Pools = []v1alpha1.Pool{{
		Name: "vg0", Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy, Classes: []string{"fast"},
		Total: resource.MustParse("10Gi"), Foreign: resource.MustParse("0"), AllocationUnit: resource.MustParse("4Mi"), LargestVolume: resource.MustParse("8Gi"),
		Inventory: []v1alpha1.InventoryItem{
			{Volume: lost, Allocated: resource.MustParse("1Gi"), Orphan: orphan("", "shop/db")},
			{Snapshot: documentedSnapshot, Allocated: resource.MustParse("1Gi"), Orphan: orphan(lost, "")},
		},
	}}
	s.must(agent.Status().Update(s.Context(), n))
	s.attach()
}

// attach makes the shared disk of the claim shop/demo, which node-1 writes.
func (s server) attach() {
	s.Helper()
	for _, node := range []string{"node-1", "node-2"} {
		agent := s.Agent(s.T, node) // makes the Node, too
		s.must(client.IgnoreAlreadyExists(agent.Create(s.Context(), &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: node}})))
		n := &corev1.Node{}
		s.must(s.Client.Get(s.Context(), client.ObjectKey{Name: node}, n))
		n.Spec.Taints, n.Spec.Unschedulable = nil, false // an API server taints a new Node until a controller sees that it is ready
		s.must(s.Client.Update(s.Context(), n))
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		s.must(s.Client.Status().Update(s.Context(), n))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: v1alpha1.AgentLeasePrefix + node}}
		s.must(client.IgnoreAlreadyExists(s.Client.Create(s.Context(), lease)))
	}
	v := sharedDisk()
	status := v.Status
	s.must(s.Client.Create(s.Context(), v))
	v.Status = status
	s.must(s.Controller(s.T).Status().Update(s.Context(), v))
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.DiskDriverName, VolumeHandle: demo}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "demo"}
	s.must(s.Client.Create(s.Context(), pv))
}

// clear deletes all objects of a kind, whatever their finalizers wait for.
func (s server) clear(list client.ObjectList) {
	s.Helper()
	s.must(s.Client.List(s.Context(), list))
	var objects []client.Object
	switch l := list.(type) {
	case *v1alpha1.VolumeList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *v1alpha1.SnapshotList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *corev1.PersistentVolumeList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	}
	for _, o := range objects {
		o.SetFinalizers(nil)
		s.must(s.Client.Update(s.Context(), o))
		s.must(client.IgnoreNotFound(s.Client.Delete(s.Context(), o)))
	}
}

// plugin runs kubectl berth as a user does. A question for confirmation and a finding are no failure.
func (s server) plugin(args ...string) (string, error) {
	var out, notes strings.Builder
	root := newRootCommand(connect)
	root.SetArgs(append(args, "--kubeconfig", s.kubeconfig))
	root.SetOut(&out)
	root.SetErr(&notes)
	err := root.ExecuteContext(s.Context())
	var findings findingsError
	if errors.Is(err, errUnconfirmed) || errors.As(err, &findings) {
		err = nil
	}
	return out.String(), err
}

var (
	block   = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```")
	line    = regexp.MustCompile(`(?m)^(?:\$ )?kubectl berth (.*)$`)
	inline  = regexp.MustCompile("`kubectl\\s+berth\\s+([^`]+)`")
	example = regexp.MustCompile(`<[^>]*>`)
)

// documented returns the commands that a page tells, each without "kubectl berth".
func documented(t *testing.T, page string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range block.FindAllStringSubmatch(string(text), -1) {
		for _, l := range line.FindAllStringSubmatch(strings.ReplaceAll(b[1], "\\\n", " "), -1) {
			commands = append(commands, l[1])
		}
	}
	for _, i := range inline.FindAllStringSubmatch(block.ReplaceAllString(string(text), ""), -1) {
		commands = append(commands, strings.Join(strings.Fields(i[1]), " "))
	}
	slices.Sort(commands)
	return slices.Compact(commands)
}

// filled replaces the words that a page has in place of names.
func filled(command string) []string {
	command, _, _ = strings.Cut(command, " | ")
	command, _, _ = strings.Cut(command, " > ")
	command = example.ReplaceAllString(command, "web")
	name := lost
	if strings.HasPrefix(command, "explain") {
		name = "web"
	}
	for word, value := range map[string]string{
		"NODE": "node-3", "NAMESPACE/CLAIM": "shop/db", "NAMESPACE/NAME": "shop/db", "SHELL": "bash",
	} {
		command = strings.ReplaceAll(command, word, value)
	}
	fields := strings.Fields(command)
	for i := range fields {
		if fields[i] == "NAME" {
			fields[i] = name
		}
	}
	return fields
}

// unfinished is what commands say that wait for agents: there are none here.
var unfinished = map[string]string{"failover": "it goes on by itself", "drain": "1 volumes have not moved within 0s"}

func TestEachDocumentedCommandIsUnderstoodByARealCluster(t *testing.T) {
	s := serve(t)
	docs, err := filepath.Abs("../../docs")
	s.must(err)
	t.Chdir(t.TempDir())
	root := newRootCommand(connect)
	root.InitDefaultCompletionCmd()
	for _, page := range []string{"kubectl.md", "orphans.md"} {
		commands := documented(t, filepath.Join(docs, page))
		if len(commands) < 8 {
			t.Fatalf("%s has %d commands: %v", page, len(commands), commands)
		}
		for _, command := range commands {
			t.Run(page+" "+command, func(t *testing.T) {
				s := server{t, s.Environment, s.kubeconfig}
				s.restore()
				args := filled(command)
				cmd, rest, err := root.Find(args)
				if err != nil {
					t.Fatal(err)
				}
				if len(rest) == 0 && cmd.Args != nil && cmd.Args(cmd, nil) != nil {
					return // the text names the command, and tells no use of it
				}
				if slices.Contains(args, "--undo") {
					before := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--undo" })
					if _, err := s.plugin(append(before, "--yes")...); err != nil {
						t.Fatal(err)
					}
				}
				if args[0] == "forget" && slices.Contains(args, "--node-is-gone") {
					if _, err := s.plugin("adopt", "--all", "--yes"); err != nil { // so that objects name the node
						t.Fatal(err)
					}
					s.leave()
					defer s.comeBack()
				}
				if late := unfinished[args[0]]; late != "" && slices.Contains(args, "--yes") {
					if out, err := s.plugin(append(args, "--timeout", "0s")...); err == nil || !strings.Contains(err.Error(), late) {
						t.Errorf("%v\n%s", err, out)
					}
					return
				}
				if out, err := s.plugin(args...); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// leave deletes the Node of node-3, and comeBack makes it again.
func (s server) leave() {
	s.must(client.IgnoreNotFound(s.Client.Delete(s.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-3"}})))
}

func (s server) comeBack() {
	s.must(client.IgnoreAlreadyExists(s.Client.Create(s.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-3"}})))
}

func TestALostClusterIsAdoptedBundledAndExaminedOnARealAPIServer(t *testing.T) {
	s := serve(t)
	t.Chdir(t.TempDir())
	s.restore()
	if out, err := s.plugin("doctor"); err != nil || strings.Count(out, "Error ObjectLost") != 2 {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := s.plugin("adopt", "--all", "--yes"); err != nil || strings.Count(out, "Adopted") != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := s.plugin("adopt", "--all", "--yes"); err != nil || strings.Count(out, "None") != 2 {
		t.Errorf("again: %v: %s", err, out)
	}
	pv := &corev1.PersistentVolume{}
	s.must(s.Client.Get(t.Context(), client.ObjectKey{Name: lost}, pv))
	if pv.Spec.ClaimRef.Namespace != "shop" || pv.Spec.ClaimRef.Name != "db" {
		t.Errorf("kept for %+v", pv.Spec.ClaimRef)
	}
	if _, err := s.plugin("bundle", "-f", "b.tar.gz"); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(contents(t, "b.tar.gz"), "\n")
	if !strings.Contains(text, lost) || strings.Contains(text, "hunter2canary") || !strings.Contains(text, "the cluster has no objects of this kind") {
		t.Error("the bundle lacks the volume, or the kinds that are missing, or it has a secret")
	}
}
