package csi

import (
	"context"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/usecase/volumes"
)

// bare is a second driver, with less than the local one has.
func bare() driver.Driver {
	return driver.Driver{Name: "bare.example.org", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, Why: "it is for one pod"}
}

// face serves all services of a driver on a socket of its own.
func face(t *testing.T, d driver.Driver) *grpc.ClientConn {
	t.Helper()
	socket := filepath.Join(shortDir(t), "csi.sock")
	listener, err := Listen(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	var scratches InlineVolumes
	if d.Inline {
		scratches = &inlineVolumes{}
	}
	server := &Server{
		Services: []Service{&Identity{Driver: d}, NewController(d, &answers{volume: ext4Volume}), NewNode(d, "n1", &nodeVolumes{}, scratches)},
		Log:      logr.Discard(), Metrics: metrics.NewCSIMetricsManagerForPlugin(d.Name),
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serving %s ended with %v", d.Name, err)
		}
	})
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestOneProcessServesTwoDriversEachByItsOwnName(t *testing.T) {
	for conn, d := range map[*grpc.ClientConn]driver.Driver{face(t, driver.Local()): driver.Local(), face(t, bare()): bare()} {
		info, err := csi.NewIdentityClient(conn).GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
		if err != nil || info.GetName() != d.Name {
			t.Errorf("%s calls itself %s, %v", d.Name, info.GetName(), err)
		}
	}
}

func TestADriverRefusesWhatOnlyTheOtherOneDoes(t *testing.T) {
	inline := &csi.NodePublishVolumeRequest{
		VolumeId: "csi-" + "0123456789012345678901234567890123456789012345678901234567890123", TargetPath: "/p",
		VolumeCapability: mounted(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, ""),
		VolumeContext:    map[string]string{ephemeralKey: "true", podUIDKey: "u", "poolClass": "fast", "size": "1Gi"},
	}
	for conn, want := range map[*grpc.ClientConn]map[string]codes.Code{
		face(t, driver.Local()): {"capacity": codes.OK, "inline": codes.OK, "mode": codes.OK},
		face(t, bare()):         {"capacity": codes.Unimplemented, "inline": codes.InvalidArgument, "mode": codes.InvalidArgument},
	} {
		controller, node := csi.NewControllerClient(conn), csi.NewNodeClient(conn)
		_, capacity := controller.GetCapacity(t.Context(), &csi.GetCapacityRequest{})
		_, published := node.NodePublishVolume(t.Context(), inline)
		_, created := controller.CreateVolume(t.Context(), create())
		for call, err := range map[string]error{"capacity": capacity, "inline": published, "mode": created} {
			if got := status.Code(err); got != want[call] {
				t.Errorf("%s: %s, want %s: %v", call, got, want[call], err)
			}
		}
		announced, err := controller.ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{})
		has := slices.ContainsFunc(announced.GetCapabilities(), func(c *csi.ControllerServiceCapability) bool {
			return c.GetRpc().GetType() == csi.ControllerServiceCapability_RPC_GET_CAPACITY
		})
		if err != nil || has != (capacity == nil) {
			t.Errorf("capacity is announced: %v, %v", has, err)
		}
	}
}

func TestAClaimOfSharedDisksGetsTheLabelThatMoves(t *testing.T) {
	controller := csi.NewControllerClient(face(t, driver.Disk()))
	made, err := controller.CreateVolume(t.Context(), create(func(r *csi.CreateVolumeRequest) {
		r.Parameters = map[string]string{"poolClass": "san", "maxShares": "2"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"berth.node-restriction.kubernetes.io/" + made.GetVolume().GetVolumeId(): "true"}
	if got := made.GetVolume().GetAccessibleTopology(); len(got) != 1 || !maps.Equal(got[0].GetSegments(), want) {
		t.Errorf("it is on %v", got)
	}
	for name, tc := range map[string]struct {
		parameters map[string]string
		says       string
	}{
		"a malformed number":            {map[string]string{"poolClass": "san", "maxShares": "many"}, "maxShares"},
		"a failover that is neither":    {map[string]string{"poolClass": "san", "automaticFailover": "manual"}, "automaticFailover"},
		"a check that is neither":       {map[string]string{"poolClass": "san", "enableFileSystemConsistencyCheck": "often"}, "enableFileSystemConsistencyCheck"},
		"a parameter that there is not": {map[string]string{"poolClass": "san", "skuName": "Premium"}, "skuName"},
	} {
		_, err := controller.CreateVolume(t.Context(), create(func(r *csi.CreateVolumeRequest) { r.Parameters = tc.parameters }))
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheParametersOfSharedDisksReachTheRequest(t *testing.T) {
	asked := create(func(r *csi.CreateVolumeRequest) {
		r.Parameters = map[string]string{"poolClass": "san", "maxShares": "3", "maxMountReplicaCount": "1", "enableMountReplicaReductionOnDiskPressure": "true",
			"enableFileSystemConsistencyCheck": "true", "automaticFailover": "false"}
	})
	got, err := parseCreate(driver.Disk(), asked)
	if want := (&volumes.Attachments{MaxShares: 3, Factor: 2, Yields: true, Check: true, OnDemand: true}); err != nil || got.PoolClass != "san" || !reflect.DeepEqual(got.Attachments, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parseCreate(driver.Local(), create()); err != nil || got.Attachments != nil {
		t.Errorf("a local volume is asked for as %+v, %v", got, err)
	}
}

func TestSeveralNodesWriteABlockDeviceOfASharedDisk(t *testing.T) {
	const many = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	class := map[string]string{"poolClass": "san", "maxShares": "2", "maxMountReplicaCount": "0"}
	for name, tc := range map[string]struct {
		driver  driver.Driver
		class   map[string]string
		uses    []*csi.VolumeCapability
		refused string
		many    bool
	}{
		"all may write":                 {uses: []*csi.VolumeCapability{raw(many)}, many: true},
		"a claim that names two modes":  {uses: []*csi.VolumeCapability{raw(writer), raw(many)}, many: true},
		"one node at a time":            {uses: []*csi.VolumeCapability{raw(writer)}},
		"a filesystem":                  {uses: []*csi.VolumeCapability{mounted(many, "")}, refused: "volumeMode Block"},
		"a class with a replica":        {class: map[string]string{"poolClass": "san", "maxShares": "2"}, uses: []*csi.VolumeCapability{raw(many)}, refused: "maxMountReplicaCount"},
		"a class with one share":        {class: map[string]string{"poolClass": "san"}, uses: []*csi.VolumeCapability{raw(many)}, refused: "maxShares"},
		"readers on several nodes":      {uses: []*csi.VolumeCapability{raw(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY)}, refused: "is not supported"},
		"a volume that lives on a node": {driver: driver.Local(), class: map[string]string{"poolClass": "fast"}, uses: []*csi.VolumeCapability{raw(many)}, refused: "is not supported"},
	} {
		of, parameters := tc.driver, tc.class
		if of.Name == "" {
			of = driver.Disk()
		}
		if parameters == nil {
			parameters = class
		}
		got, err := parseCreate(of, create(func(r *csi.CreateVolumeRequest) { r.Parameters, r.VolumeCapabilities = parameters, tc.uses }))
		switch {
		case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)):
			t.Errorf("%s: %v, want one about %s", name, err, tc.refused)
		case tc.refused == "" && (err != nil || got.Attachments.ManyWriters != tc.many):
			t.Errorf("%s: %+v, %v", name, got.Attachments, err)
		}
	}
}
