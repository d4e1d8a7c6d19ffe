package staging

import (
	"errors"
	"slices"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// dataset carves a volume that is a filesystem of ZFS.
func (n *node) dataset(t *testing.T, id string) provision.Volume {
	t.Helper()
	tank := provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"}
	n.disks.AddPool(memory.PoolConfig{PoolRef: tank, Total: 1024 * mib})
	v, err := n.pool.Create(t.Context(), provision.CreateRequest{ID: id, Pool: tank, Size: 64 * mib, Tree: provision.Dataset})
	if err != nil {
		t.Fatal(err)
	}
	n.specs[id] = spec(provision.Dataset, tank)
	return v
}

func TestADatasetIsMountedByItsNameAndNothingIsMadeOnIt(t *testing.T) {
	n := newNode(t)
	v := n.dataset(t, id)
	n.specs[id].Adopted = true
	for range 2 {
		n.stage(t, id)
		n.publish(t, id, "pod")
	}
	if got, want := n.mounts.Mounts(v.Content.Source), []string{n.path("pod"), n.path("stage-" + id)}; !slices.Equal(got, want) {
		t.Errorf("%s is at %v, want %v", v.Content.Source, got, want)
	}
	if made := n.disks.Formats(id); made != 0 {
		t.Errorf("a filesystem was made %d times", made)
	}
	if got := n.record(t, id).Filesystem; got != provision.Dataset {
		t.Errorf("recorded as %q: whoever finds it must know that it may hold data", got)
	}
}

func TestADatasetGrowsWhileItIsMounted(t *testing.T) {
	n := newNode(t)
	n.dataset(t, id)
	n.stage(t, id)
	n.publish(t, id, "pod")
	if _, err := n.pool.Expand(t.Context(), provision.ExpandRequest{ID: id, Size: 128 * mib}); err != nil {
		t.Fatal(err)
	}
	if size, err := n.Expand(t.Context(), id, n.path("pod"), 128*mib); err != nil || size != 128*mib {
		t.Errorf("%d, %v", size, err)
	}
	if got, err := n.Stats(t.Context(), id, n.path("pod")); err != nil || got.Block || got.Total != 128*mib {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestADatasetIsNoBlockDevice(t *testing.T) {
	n := newNode(t)
	n.dataset(t, id)
	r := StageRequest{ID: id, Path: n.path("stage"), Block: true}
	if err := n.Stage(t.Context(), r); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("staged: %v", err)
	}
	if err := n.Publish(t.Context(), PublishRequest{ID: id, Target: n.path("pod"), Block: true}); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("published: %v", err)
	}
	clear(n.specs)
	if err := n.Stage(t.Context(), r); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("staged while its object is not known: %v", err)
	}
}

func TestADatasetIsNotMountedAsAnotherFilesystem(t *testing.T) {
	n := newNode(t)
	n.dataset(t, id)
	r := StageRequest{ID: id, Path: n.path("stage"), Filesystem: provision.Ext4}
	if err := n.Stage(t.Context(), r); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("staged: %v", err)
	}
	n.stage(t, id)
	if err := n.Stage(t.Context(), r); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("staged once it is in use: %v", err)
	}
}
