package agent

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi" //nolint:depguard // the test speaks as the kubelet does
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/health/healthtest"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
)

// dial connects to a unix socket.
func dial(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// answers says whether a health endpoint has a status.
func (a *agent) answers(t *testing.T, path string, status int) func() bool {
	return func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.http+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == status
	}
}

func TestPodsStartAndStopWhileTheAPIServerIsAway(t *testing.T) {
	s := newSite(t, "")
	id := v1alpha1.VolumeName(s.name)
	for _, do := range []func() error{
		func() error {
			_, err := s.node.Create(t.Context(), provision.CreateRequest{ID: id, Pool: s.pool, Size: gib})
			return err
		},
		func() error {
			_, err := s.node.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Ext4})
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	s.traffic.cut()
	a := s.start()
	node, ctx := csi.NewNodeClient(dial(t, a.csi)), t.Context()
	use := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
	stage, pod := filepath.Join(s.dir, "stage"), filepath.Join(s.dir, "pod")
	calls := []func() error{
		func() error {
			_, err := node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: stage, VolumeCapability: use})
			return err
		},
		func() error {
			_, err := node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: stage, TargetPath: pod, VolumeCapability: use})
			return err
		},
		func() error {
			_, err := node.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: pod})
			return err
		},
		func() error {
			_, err := node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: pod})
			return err
		},
		func() error {
			_, err := node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: stage})
			return err
		},
	}
	for i, call := range calls {
		if err := call(); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	await(t, "health without the API server", a.answers(t, "/healthz", http.StatusOK))
	await(t, "readiness without the API server", a.answers(t, "/readyz", http.StatusOK))
	s.traffic.mend()
}

// mute is a node whose pools cannot be listed while it is mute.
type mute struct {
	poold.Node
	now     atomic.Bool
	changed chan struct{}
}

func (m *mute) Changed() <-chan struct{} { return m.changed }

func (m *mute) Report(ctx context.Context) ([]provision.Pool, error) {
	if m.now.Load() {
		return nil, provision.ErrUnavailable
	}
	return m.Node.Report(ctx)
}

func TestPoolsThatCannotBeListedAreNoReasonToRestart(t *testing.T) {
	s := newSite(t, "")
	m := &mute{Node: s.node, changed: make(chan struct{}, 1)}
	s.node = m
	pc, sc := s.classes()
	s.create(pc, sc)
	a := s.start()
	await(t, "readiness", a.answers(t, "/readyz", http.StatusOK))
	await(t, "the capacity", func() bool { return s.capacity() == "10Gi" })
	m.now.Store(true)
	m.changed <- struct{}{}
	await(t, "unreadiness", a.answers(t, "/readyz", http.StatusInternalServerError))
	await(t, "a capacity of nothing", func() bool { return s.capacity() == "0" })
	await(t, "the condition", func() bool { return s.storageNode().Status.Conditions[0].Status == "False" })
	if !a.answers(t, "/healthz", http.StatusOK)() {
		t.Error("the agent is not healthy")
	}
	m.now.Store(false)
	await(t, "readiness again", a.answers(t, "/readyz", http.StatusOK))
	await(t, "the capacity again", func() bool { return s.capacity() == "10Gi" })
}

func TestTheKubeletIsToldOnlyOnceThePoolsAreKnown(t *testing.T) {
	s := newSite(t, "")
	m := &mute{Node: s.node, changed: make(chan struct{}, 1)}
	m.now.Store(true)
	s.node = m
	s.registration = filepath.Join(t.TempDir(), "reg.sock")
	a := s.start()
	await(t, "health", a.answers(t, "/healthz", http.StatusOK))
	var d net.Dialer
	if _, err := d.DialContext(t.Context(), "unix", s.registration); err == nil {
		t.Error("the driver is offered before the pools are known")
	}
	m.now.Store(false)
	kubelet := registerapi.NewRegistrationClient(dial(t, s.registration))
	info, err := kubelet.GetInfo(t.Context(), &registerapi.InfoRequest{})
	if err != nil || info.GetName() != v1alpha1.LocalDriverName || info.GetEndpoint() != a.csi {
		t.Errorf("info %v, %v", info, err)
	}
	if !a.answers(t, "/readyz", http.StatusInternalServerError)() {
		t.Error("ready before the kubelet accepted the driver")
	}
	if _, err := kubelet.NotifyRegistrationStatus(t.Context(), &registerapi.RegistrationStatus{PluginRegistered: true}); err != nil {
		t.Fatal(err)
	}
	await(t, "readiness", a.answers(t, "/readyz", http.StatusOK))
}

// hasty is a clock by which the wait for the first report is over at once.
type hasty struct{ clock.RealClock }

func (h hasty) NewTimer(d time.Duration) clock.Timer {
	if d == firstReport {
		d = 0
	}
	return h.RealClock.NewTimer(d)
}

func TestTheKubeletIsToldAtLastThoughThePoolsCannotBeAsked(t *testing.T) {
	s := newSite(t, "")
	m := &mute{Node: s.node, changed: make(chan struct{}, 1)}
	m.now.Store(true)
	s.node, s.clock = m, hasty{}
	s.registration = filepath.Join(t.TempDir(), "reg.sock")
	s.start()
	kubelet := registerapi.NewRegistrationClient(dial(t, s.registration))
	if _, err := kubelet.GetInfo(t.Context(), &registerapi.InfoRequest{}); err != nil {
		t.Error(err)
	}
}

func TestMetricsShowOperationsAndPools(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	defer s.finish("a")
	a := s.start()
	await(t, "the replica to be ready", s.says("a", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved))
	_, page := healthtest.Get(t, a.http+"/metrics")
	for _, series := range []string{
		`berth_agent_disk_operation_seconds_count{operation="Create",outcome="ok"} 1`,
		`berth_pool_volumes{pool="` + s.pool.Name + `"} 1`,
		`controller_runtime_reconcile_total{controller="replicas"`,
	} {
		if !strings.Contains(page, series) {
			t.Errorf("%s is missing", series)
		}
	}
}
