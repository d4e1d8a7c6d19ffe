//go:build platform

package guesttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// Every thin volume takes a block of the metadata, so thin volumes that LVM does not know fill
// it fast. They stand for the mappings and the snapshots that fill it in production.
func TestAThinPoolWhoseMetadataIsFullComesBackOnRealLVM(t *testing.T) {
	newDisk(t, lvmtest.Disks(t, 1)[0], 128*mib)
	group := lvmtest.RealGroup(t, groupName, diskPath)
	ref := lvmtest.RealThinPool(t, group.Name, "pool", 64*mib, "--poolmetadatasize", "4M")
	p, _ := started(t)
	v := made(t, p, request(ref, "pvc-kept", 8))
	put(t, v.Content.Source, v.Size, secret)
	if _, err := p.Snapshot(t.Context(), snapshotOf(v.ID, "snap-kept")); err != nil {
		t.Fatal(err)
	}

	filled, full := 0, false
	for id := 1000; !full; id++ {
		if full = !message(t, fmt.Sprintf("create_thin %d", id)); !full {
			filled++
		}
		if filled == 300 {
			careful := request(ref, "pvc-careful", 4)
			careful.Limits.MaxFill = 20
			lvmtest.Eventually(t, func() bool { _, err := p.Create(t.Context(), careful); return errors.Is(err, provision.ErrNoSpace) },
				"a class that leaves room in the metadata was let in")
		}
		if filled > 2000 {
			t.Fatal("the metadata does not fill up")
		}
	}
	t.Logf("%d thin volumes filled the metadata", filled)
	eventually(t, p, ref, func(p provision.Pool) bool {
		return strings.Contains(p.Problem, "metadata") && strings.Contains(p.Problem, "--poolmetadatasize")
	}, "metadata that is full is no problem")
	for what, do := range thinSteps(p, ref) {
		if what != "expanding" {
			refused(t, what, do)
		}
	}
	holds(t, v.Content.Source, v.Size, secret)

	lvmtest.LVM(t, "lvextend", "--yes", "--poolmetadatasize", "+8M", ref.Name)
	eventually(t, p, ref, func(p provision.Pool) bool { return p.Problem == "" }, "more metadata did not help")
	for id := range filled {
		if !message(t, fmt.Sprintf("delete %d", 1000+id)) {
			t.Fatalf("thin volume %d stays", 1000+id)
		}
	}
	restored := made(t, p, copyOf(request(ref, "pvc-restored", 8), "snap-kept"))
	holds(t, restored.Content.Source, restored.Size, secret)
	holds(t, v.Content.Source, v.Size, secret)
	emptied(t, p, ref, "pool")
}

// message sends a message to the kernel's thin pool, and says whether the pool accepted it.
func message(t *testing.T, text string) bool {
	t.Helper()
	return faultydisk.Tell("vg--berth-pool-tpool", text) == nil
}

func snapshotOf(volume, id string) provision.SnapshotRequest {
	return provision.SnapshotRequest{ID: id, Volume: volume, Limits: provision.Limits{Overprovision: 1000}}
}

func copyOf(r provision.CreateRequest, snapshot string) provision.CreateRequest {
	r.Source.Snapshot = snapshot
	return r
}

// thinSteps returns idempotent operations by their names.
func thinSteps(p *lvm.Provisioner, ref provision.PoolRef) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"creating": func(ctx context.Context) error {
			_, err := p.Create(ctx, request(ref, "pvc-new", 4))
			return err
		},
		"taking a snapshot": func(ctx context.Context) error {
			_, err := p.Snapshot(ctx, snapshotOf("pvc-kept", "snap-new"))
			return err
		},
		"restoring": func(ctx context.Context) error {
			_, err := p.Create(ctx, copyOf(request(ref, "pvc-copy", 8), "snap-kept"))
			return err
		},
		"expanding": func(ctx context.Context) error {
			_, err := p.Expand(ctx, provision.ExpandRequest{ID: "pvc-other", Size: 16 * mib, Limits: provision.Limits{Overprovision: 1000}})
			return err
		},
	}
}
