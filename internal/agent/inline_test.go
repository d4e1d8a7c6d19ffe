package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi" //nolint:depguard // the test speaks as the kubelet does
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

// inlinePod is a pod with an inline volume, and the kubelet's part in it.
type inlinePod struct {
	*site
	pod    *corev1.Pod
	node   csi.NodeClient
	handle string
}

const inlineVolume = "scratch"

// run makes a pod on the node, as the scheduler and the kubelet do.
func (s *site) run(a *agent) *inlinePod {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.name},
		Spec:       corev1.PodSpec{NodeName: s.name, Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	s.create(pod)
	p := &inlinePod{site: s, pod: pod, node: csi.NewNodeClient(dial(s.t, a.csi)), handle: "csi-" + strings.Repeat("0123456789abcdef", 4)}
	if err := os.MkdirAll(filepath.Dir(p.target()), 0o750); err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (p *inlinePod) target() string {
	return filepath.Join(p.dir, "pods", string(p.pod.UID), "volumes/kubernetes.io~csi", inlineVolume, "mount")
}

func (p *inlinePod) publish(size string) error {
	_, err := p.node.NodePublishVolume(p.t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: p.handle, TargetPath: p.target(),
		VolumeContext: map[string]string{
			"poolClass": "pc-" + p.name, "size": size, "csi.storage.k8s.io/ephemeral": "true",
			"csi.storage.k8s.io/pod.uid": string(p.pod.UID), "csi.storage.k8s.io/pod.name": p.pod.Name,
			"csi.storage.k8s.io/pod.namespace": p.pod.Namespace, "csi.storage.k8s.io/serviceAccount.name": "default",
		},
		VolumeCapability: &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		},
	})
	return err
}

func (p *inlinePod) unpublish() error {
	_, err := p.node.NodeUnpublishVolume(p.t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: p.handle, TargetPath: p.target()})
	return err
}

// listed says whether the node's report names the volume, and nothing else.
func (p *inlinePod) listed() bool {
	items := p.inventory()
	return len(items) == 1 && items[0].Inline != nil &&
		*items[0].Inline == v1alpha1.InlineReference{PodUID: p.pod.UID, Name: inlineVolume} && items[0].Allocated.Value() == gib
}

// vanish ends the pod without the kubelet unpublishing the volume: the node went
// down, the pod was deleted by force, and the node came up again.
func (p *inlinePod) vanish() {
	p.t.Helper()
	if err := p.Client.Delete(p.t.Context(), p.pod, client.GracePeriodSeconds(0)); err != nil {
		p.t.Fatal(err)
	}
	if err := p.mounts.Unmount(p.t.Context(), p.target()); err != nil {
		p.t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(p.dir, "pods", string(p.pod.UID))); err != nil {
		p.t.Fatal(err)
	}
}

func (p *inlinePod) clean() bool {
	marks, err := os.ReadDir(string(inlineMarks(Options{Driver: driver.Local(), KubeletDir: p.dir})))
	if err != nil {
		p.t.Fatal(err)
	}
	return len(p.inventory()) == 0 && len(marks) == 0
}

func TestAnInlineVolumeLivesAndDiesWithItsPod(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc)
	p := s.run(s.start())
	await(t, "the volume to be published", func() bool { return p.publish("1Gi") == nil })
	await(t, "the inventory to name it", p.listed)
	stats, err := p.node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: p.handle, VolumePath: p.target()})
	if err != nil || len(stats.GetUsage()) != 2 || stats.GetUsage()[0].GetTotal() != gib {
		t.Errorf("figures %v, %v", stats, err)
	}
	if err := p.unpublish(); err != nil {
		t.Fatal(err)
	}
	await(t, "nothing to be left of it", p.clean)
}

func TestAnInlineVolumeThatFindsNoRoomSaysSo(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc)
	p := s.run(s.start())
	var err error
	await(t, "the node to know the class", func() bool { err = p.publish("11Gi"); return status.Code(err) != codes.Unavailable })
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), s.pool.Name) {
		t.Errorf("error %v; want %s, with the pool's name", err, codes.ResourceExhausted)
	}
	if err := p.unpublish(); err != nil {
		t.Error(err)
	}
}

func TestANewInlineVolumeWaitsForTheAPIServerAndSaysSo(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc)
	s.traffic.cut()
	p := s.run(s.start())
	err := p.publish("1Gi")
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "PoolClass") {
		t.Errorf("error %v; want %s and what is missing", err, codes.Unavailable)
	}
	s.traffic.mend()
	await(t, "the volume to be published", func() bool { return p.publish("1Gi") == nil })
	s.traffic.cut()
	if err := p.unpublish(); err != nil {
		t.Errorf("a pod cannot end without the API server: %v", err)
	}
	s.traffic.mend()
}

func TestTheInlineVolumeOfAPodThatVanishedIsRemoved(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc)
	a := s.start()
	p := s.run(a)
	await(t, "the volume to be published", func() bool { return p.publish("1Gi") == nil })
	await(t, "the inventory to name it", p.listed)
	a.stop()
	p.vanish()
	s.start()
	await(t, "nothing to be left of it", p.clean)
}
