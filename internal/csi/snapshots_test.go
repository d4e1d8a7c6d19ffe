package csi

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/snapshots"
	"berth.dev/berth/internal/usecase/volumes"
)

// pictures gives every use case one snapshot or one error, and records the arguments.
type pictures struct {
	snapshot snapshots.Snapshot
	err      error
	asked    []any
}

func (p *pictures) Create(_ context.Context, r snapshots.Request) (snapshots.Snapshot, error) {
	p.asked = append(p.asked, r)
	return p.snapshot, p.err
}

func (p *pictures) Delete(_ context.Context, id string) error {
	p.asked = append(p.asked, id)
	return p.err
}

func (p *pictures) Get(_ context.Context, id string) (snapshots.Snapshot, error) {
	p.asked = append(p.asked, id)
	return p.snapshot, p.err
}

func (p *pictures) List(_ context.Context, volume, token string, limit int) ([]snapshots.Snapshot, string, error) {
	p.asked = append(p.asked, volume, token, limit)
	return []snapshots.Snapshot{p.snapshot}, "more", p.err
}

const snapID = "snap-00000000-0000-0000-0000-000000000002"

var (
	taken   = snapshots.Snapshot{ID: snapID, Volume: id, Size: 7, Taken: time.Unix(1e9, 0), Ready: true}
	takenAs = &csi.Snapshot{SnapshotId: snapID, SourceVolumeId: id, SizeBytes: 7, CreationTime: timestamppb.New(time.Unix(1e9, 0)), ReadyToUse: true}
)

func TestSnapshotsAreAnnouncedOnlyWhereTheyAreServed(t *testing.T) {
	plain := NewController(driver.Local(), &answers{volume: ext4Volume})
	for c, announced := range map[*Controller]bool{plain: false, plain.WithSnapshots(&pictures{snapshot: taken}): true} {
		got, err := c.ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, each := range got.GetCapabilities() {
			switch each.GetRpc().GetType() {
			case csi.ControllerServiceCapability_RPC_CLONE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
				csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS:
				found++
			}
		}
		if want := map[bool]int{true: 3}[announced]; found != want {
			t.Errorf("%d of the capabilities are announced, want %d", found, want)
		}
		copied := create(func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = sourceMessage(&v1alpha1.VolumeSource{Snapshot: snapID})
		})
		_, listed := c.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{})
		_, deleted := c.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: snapID})
		_, created := c.CreateVolume(t.Context(), copied)
		for call, err := range map[string]error{"list": listed, "delete": deleted, "create a copy": created} {
			if (err == nil) != announced {
				t.Errorf("%s, announced %t: %v", call, announced, err)
			}
		}
	}
}

func TestASnapshotIsToldAsItIs(t *testing.T) {
	p := &pictures{snapshot: taken}
	got, err := NewController(driver.Local(), &answers{}).WithSnapshots(p).CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{
		Name: "n", SourceVolumeId: id, Parameters: map[string]string{"csi.storage.k8s.io/volumesnapshot/name": "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, got.GetSnapshot(), takenAs)
	same(t, p.asked, []any{snapshots.Request{Name: "n", Volume: id}})
}

func TestMalformedRequestsForSnapshotsAreRefused(t *testing.T) {
	tests := map[string]struct {
		request *csi.CreateSnapshotRequest
		told    string
	}{
		"no name":              {&csi.CreateSnapshotRequest{SourceVolumeId: id}, "snapshot name is missing"},
		"a name too long":      {&csi.CreateSnapshotRequest{SourceVolumeId: id, Name: strings.Repeat("x", 129)}, "129 bytes"},
		"no volume":            {&csi.CreateSnapshotRequest{Name: "n"}, "source volume id is missing"},
		"an unknown parameter": {&csi.CreateSnapshotRequest{Name: "n", SourceVolumeId: id, Parameters: map[string]string{"x": "y"}}, `unknown parameter "x"`},
	}
	c := NewController(driver.Local(), &answers{}).WithSnapshots(&pictures{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := c.CreateSnapshot(t.Context(), test.request)
			if err == nil || !strings.Contains(err.Error(), test.told) || status.Code(toStatus(err)) != codes.InvalidArgument {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := c.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{}); status.Code(toStatus(err)) != codes.InvalidArgument {
		t.Errorf("deleting nothing: %v", err)
	}
	if _, err := c.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{MaxEntries: -1}); status.Code(toStatus(err)) != codes.InvalidArgument {
		t.Errorf("a negative page: %v", err)
	}
}

func TestListSnapshots(t *testing.T) {
	missing := provision.ErrNotFound
	tests := map[string]struct {
		request *csi.ListSnapshotsRequest
		err     error
		asked   []any
		entries int
		next    string
	}{
		"lists a page":                        {&csi.ListSnapshotsRequest{MaxEntries: 3, StartingToken: "x"}, nil, []any{"", "x", 3}, 1, "more"},
		"lists the snapshots of a volume":     {&csi.ListSnapshotsRequest{SourceVolumeId: id}, nil, []any{id, "", 0}, 1, "more"},
		"lists a snapshot by id":              {&csi.ListSnapshotsRequest{SnapshotId: snapID}, nil, []any{snapID}, 1, ""},
		"lists a snapshot by id and volume":   {&csi.ListSnapshotsRequest{SnapshotId: snapID, SourceVolumeId: id}, nil, []any{snapID}, 1, ""},
		"lists no snapshot of another volume": {&csi.ListSnapshotsRequest{SnapshotId: snapID, SourceVolumeId: "x"}, nil, []any{snapID}, 0, ""},
		"lists no snapshot for an unknown id": {&csi.ListSnapshotsRequest{SnapshotId: "x"}, missing, []any{"x"}, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &pictures{snapshot: taken, err: test.err}
			got, err := NewController(driver.Local(), &answers{}).WithSnapshots(p).ListSnapshots(t.Context(), test.request)
			if err != nil || len(got.GetEntries()) != test.entries || got.GetNextToken() != test.next {
				t.Errorf("%v, %v", got, err)
			}
			for _, entry := range got.GetEntries() {
				same(t, entry.GetSnapshot(), takenAs)
			}
			same(t, p.asked, test.asked)
		})
	}
}

func TestACopyIsAskedForAndToldWithItsSource(t *testing.T) {
	for name, source := range map[string]*v1alpha1.VolumeSource{"a copy of a snapshot": {Snapshot: snapID}, "a copy of a volume": {Volume: id}} {
		t.Run(name, func(t *testing.T) {
			copied := ext4Volume
			copied.Source = source
			a := &answers{volume: copied}
			got, err := NewController(driver.Local(), a).WithSnapshots(&pictures{}).CreateVolume(t.Context(), create(func(r *csi.CreateVolumeRequest) {
				r.VolumeContentSource = sourceMessage(source)
			}))
			if err != nil {
				t.Fatal(err)
			}
			same(t, got.GetVolume().GetContentSource(), sourceMessage(source))
			asked, ok := a.asked[0].(volumes.Request)
			if !ok || asked.Source == nil || *asked.Source != *source || asked.FSType != "" {
				t.Errorf("asked %+v", a.asked)
			}
		})
	}
}
