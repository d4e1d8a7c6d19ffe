package build

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/artefact"
)

// KubernetesVersion is the version of Kubernetes the modules pin.
const KubernetesVersion = "v1.37.1"

// older are the patch versions of the older minors of Kubernetes, by what people call them. Each is pinned by a
// file of its own beside go.mod.
var older = map[string]string{"1.35": "v1.35.4", "1.36": "v1.36.4"}

// Kubernetes is that of KubernetesVersion.
var Kubernetes = kubernetes(KubernetesVersion, "")

// KubernetesOf returns Kubernetes of a minor version, such as 1.36; of KubernetesVersion if that is empty.
func KubernetesOf(minor string) (Module, error) {
	if minor == "" || strings.HasPrefix(KubernetesVersion, "v"+minor+".") {
		return Kubernetes, nil
	}
	version, known := older[minor]
	if !known {
		return Module{}, fmt.Errorf("the lab cannot build Kubernetes %s; it can build %s and %s",
			minor, strings.Join(slices.Sorted(maps.Keys(older)), ", "), KubernetesVersion)
	}
	return kubernetes(version, "go-"+minor+".mod"), nil
}

// kubernetes has the control plane as one multi-call binary, and the kubelet
// and kube-proxy as their own: they run inside guests, where a small program
// starts much sooner than a large one.
func kubernetes(version, modFile string) Module {
	minor := strings.Split(version, ".")[1]
	return Module{
		Name:     "kubernetes",
		ModFile:  modFile,
		Packages: []string{".", "k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes/cmd/kube-proxy"},
		Links:    []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"},
		LDFlags: []string{
			"-X k8s.io/component-base/version.gitVersion=" + version,
			"-X k8s.io/component-base/version.gitMajor=1",
			"-X k8s.io/component-base/version.gitMinor=" + minor,
			"-X k8s.io/component-base/version.gitTreeState=clean",
			"-X k8s.io/component-base/version.gitCommit=local",
			"-X k8s.io/component-base/version.buildDate=2026-01-01T00:00:00Z",
		},
	}
}

// Containerd has the container runtime without the storage drivers that the lab does not use.
var Containerd = Module{
	Name: "containerd",
	Packages: []string{
		"github.com/containerd/containerd/v2/cmd/containerd",
		"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
		"github.com/containerd/containerd/v2/cmd/ctr",
	},
	Tags:    []string{"no_btrfs", "no_zfs", "no_devmapper"},
	LDFlags: []string{"-X github.com/containerd/containerd/v2/version.Version=v2.4.2"},
}

// Runc starts containers. Seccomp must be compiled in: the kubelet asks for
// the default profile for every sandbox.
var Runc = Module{
	Name:     "runc",
	Packages: []string{"github.com/opencontainers/runc"},
	Tags:     []string{"osusergo", "netgo", "seccomp"},
	LDFlags:  []string{"-extldflags -static", "-X main.version=1.5.2"},
	CGO:      true,
	Debian:   []string{"gcc", "libc6-dev", "libseccomp-dev", "pkg-config"},
}

// CNI has the network plugins of a node.
var CNI = Module{
	Name: "cni",
	Packages: []string{
		"github.com/containernetworking/plugins/plugins/main/bridge",
		"github.com/containernetworking/plugins/plugins/main/loopback",
		"github.com/containernetworking/plugins/plugins/main/ptp",
		"github.com/containernetworking/plugins/plugins/ipam/host-local",
		"github.com/containernetworking/plugins/plugins/meta/portmap",
	},
}

// Sidecars has the CSI sidecars that build against the same Kubernetes as the
// control plane.
var Sidecars = Module{
	Name:     "sidecars",
	Packages: []string{"github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer"},
	LDFlags:  []string{"-X main.version=v2.3.0"},
}

// Provisioner has the CSI provisioner, which builds against Kubernetes 1.36 only.
var Provisioner = Module{
	Name:     "provisioner",
	Packages: []string{"github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner"},
	LDFlags:  []string{"-X main.version=v6.3.0"},
}

// Attacher has the CSI attacher, which runs only where the disks' driver has attachRequired.
var Attacher = Module{
	Name:     "attacher",
	Packages: []string{"github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"},
	LDFlags:  []string{"-X main.version=v4.13.0"},
}

// Snapshotter has the CSI snapshotter, and the controller of VolumeSnapshots that a
// cluster has once.
var Snapshotter = Module{
	Name: "snapshotter",
	Packages: []string{
		"github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter",
		"github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller",
	},
	LDFlags: []string{"-X main.version=v8.7.0"},
}

// Etcd has the tools with which an administrator saves and restores etcd's data, in the
// version of etcd that Kubernetes has.
var Etcd = Module{
	Name:     "etcd",
	Packages: []string{"go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdutl/v3"},
}

// CoreDNS has the server of the cluster's names. Its main package is the lab's own: the upstream
// one has forty more plugins, with the clients of three clouds.
var CoreDNS = Module{Name: "coredns", Packages: []string{"."}}

// Upstream has Kubernetes' own suite of tests for drivers of CSI, ginkgo, which runs it in several
// processes, and the program of its pods.
var Upstream = Module{
	Name:     "upstream",
	Packages: []string{".", "github.com/onsi/ginkgo/v2/ginkgo", "k8s.io/kubernetes/test/images/agnhost"},
	Links:    []string{"upstream.test"}, // ginkgo takes no other name for a compiled suite
}

// Pause holds the namespaces of a pod open.
var Pause = Module{Name: "pause", Packages: []string{"."}}

// Modules lists everything the lab can build.
var Modules = []Module{Kubernetes, Containerd, Runc, CNI, Sidecars, Provisioner, Attacher, Snapshotter, Etcd, CoreDNS, Upstream, Pause}

// Get builds a module, or takes it from the store, and returns the directory
// of its programs.
func (m Module) Get(ctx context.Context, store *artefact.Store) (string, error) {
	recipe, err := m.Recipe(ctx)
	if err != nil {
		return "", err
	}
	return store.Get(ctx, recipe)
}

// Program returns the path of the named program, built if need be.
func Program(ctx context.Context, store *artefact.Store, name string) (string, error) {
	for _, m := range Modules {
		if slices.Contains(m.Programs(), name) {
			dir, err := m.Get(ctx, store)
			return filepath.Join(dir, name), err
		}
	}
	var known []string
	for _, m := range Modules {
		known = append(known, m.Programs()...)
	}
	slices.Sort(known)
	return "", fmt.Errorf("the lab cannot build %q; it can build %s", name, strings.Join(known, ", "))
}
