//go:build platform

package guesttest

import (
	"context"
	"sync"
	"testing"

	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// A process that waits for such a disk cannot even be killed.
func TestADiskThatDoesNotAnswerBlocksNoCallForEverOnRealLVM(t *testing.T) {
	d := newDisk(t, lvmtest.Disks(t, 1)[0], 64*mib)
	ref := lvmtest.RealGroup(t, groupName, diskPath)
	c := hasty(t)
	p, _ := lvmtest.Start(t, c)
	kept := made(t, p, request(ref, "pvc-kept", 8))
	put(t, kept.Content.Source, kept.Size, secret)
	made(t, p, request(ref, "pvc-gone", 4))

	d.Suspend()
	answers := sync.OnceFunc(d.Resume)
	t.Cleanup(answers)
	lvmtest.Eventually(t, func() bool { return pool(t, p, ref).Problem != "" }, "a disk that does not answer is no problem")
	t.Logf("reported: %s", pool(t, p, ref).Problem)
	refused(t, "creating", func(ctx context.Context) error {
		_, err := p.Create(ctx, request(ref, "pvc-new", 4))
		return err
	})
	// LVM would finish a change that it began once the disk answers, when no caller expects it.
	refused(t, "deleting", func(ctx context.Context) error { return p.Delete(ctx, "pvc-gone") })

	answers()
	eventually(t, p, ref, sound, "the group did not come back")
	made(t, p, request(ref, "pvc-new", 4))
	holds(t, kept.Content.Source, kept.Size, secret)
	emptied(t, p, ref)
}
