package health

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/kubeletdir"
)

const id = "pvc-00000000-0000-0000-0000-000000000001"

// node plays a node that has one volume, at one path.
type node struct {
	record        *provision.Volume
	found, silent error // of looking the volume up, and of the figures of its filesystem
	path          string
	pool          provision.Pool
	read          bool
	spec          *v1alpha1.VolumeSpec
	asked         bool
}

func (n *node) Get(context.Context, string) (provision.Volume, error) {
	if n.record == nil {
		return provision.Volume{}, n.found
	}
	return *n.record, nil
}

func (n *node) Stats(context.Context, string) (mount.Stats, error) {
	n.asked = true
	return mount.Stats{}, n.silent
}

func (n *node) Named(pool string) (provision.Pool, bool) {
	if n.pool.Name != pool {
		return provision.Pool{PoolRef: provision.PoolRef{Name: pool}}, false
	}
	return n.pool, n.read
}

func (n *node) Spec(context.Context, string) *v1alpha1.VolumeSpec { return n.spec }

func TestAVolumeIsLookedAtWithoutWaitingForItsDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pod")
	for name, tc := range map[string]struct {
		change func(n *node)
		path   string
		want   string // status and reason of the only condition
		err    error
	}{
		"a sound volume":                {func(*node) {}, path, "", nil},
		"a sound volume without a path": {func(*node) {}, "", "", nil},
		"a filesystem that hangs":       {func(n *node) { n.silent = provision.ErrUnavailable }, path, "Inaccessible NoAnswer", nil},
		"a mount that goes away":        {func(n *node) { n.silent = mount.ErrNotMounted }, path, "", nil},
		"the path of another volume":    {func(n *node) { n.silent = errors.New("another volume"); n.path = "elsewhere" }, path, "", nil},
		"a raw block volume":            {func(n *node) { n.silent = errors.New("no filesystem"); n.record.Filesystem = provision.Raw }, path, "", nil},
		"a path outside":                {func(*node) {}, "/etc", "", provision.ErrInvalid},
		"data that is gone":             {func(n *node) { n.record = nil }, path, "DataLoss DeviceMissing", nil},
		"a pool that is not there":      {func(n *node) { n.record, n.pool.Name = nil, "vg1" }, path, "Inaccessible PoolMissing", nil},
		"a pool that never answered":    {func(n *node) { n.record, n.read = nil, false }, path, "Inaccessible PoolMissing", nil},
		"a pool that is missing":        {func(n *node) { n.record, n.found, n.read = nil, provision.ErrPoolMissing, false }, path, "Inaccessible PoolMissing", nil},
		"a volume of another node":      {func(n *node) { n.record, n.spec.Replicas[0].Node = nil, "n2" }, path, "", provision.ErrNotFound},
		"a volume that no one knows":    {func(n *node) { n.record, n.spec = nil, nil }, path, "", provision.ErrNotFound},
		"a node that cannot say":        {func(n *node) { n.record, n.found = nil, provision.ErrUnavailable }, path, "", provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{
				record: &provision.Volume{ID: id, Pool: vg0, Filesystem: provision.Ext4}, found: provision.ErrNotFound, path: path,
				pool: provision.Pool{PoolRef: vg0, Total: gib}, read: true,
				spec: &v1alpha1.VolumeSpec{Replicas: []v1alpha1.ReplicaSpec{{Node: "n1", Pool: "vg0"}}},
			}
			tc.change(n)
			s := &Service{Node: "n1", Dir: kubeletdir.New(dir), Disks: n, Pools: n, Wishes: n,
				Mounts: func(provision.Volume) ([]string, error) { return []string{n.path}, nil }}
			found, err := s.Health(t.Context(), id, tc.path)
			got := ""
			for _, c := range found {
				got += string(c.Status) + " " + c.Reason
			}
			if got != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Errorf("%q, %v; want %q, %v", got, err, tc.want, tc.err)
			}
			if n.asked && n.path != path {
				t.Error("the filesystem of another volume was asked")
			}
		})
	}
}

func TestAForeignIDIsNotFound(t *testing.T) {
	if _, err := (&Service{}).Health(t.Context(), "../../etc", ""); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}
