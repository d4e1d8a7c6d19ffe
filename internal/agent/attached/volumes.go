package attached

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

// Device is a disk that is open past the page cache, and proved to be the volume's. A write is durable
// when it returns.
type Device interface {
	io.ReaderAt
	io.WriterAt
	Close() error
}

// Machine is the kernel as it has block devices.
type Machine interface {
	// Open opens a device, to write it as its only user if hold is set.
	Open(c provision.Content, hold bool) (Device, error)
	// Size of a device in bytes. It does not open the device.
	Size(c provision.Content) (int64, error)
	// Rescan has the kernel ask a device for its size again. It does not open the device.
	Rescan(ctx context.Context, c provision.Content) error
	// Mounted returns the filesystem of a device that is mounted somewhere, empty if it is not. It does not
	// open the device.
	Mounted(c provision.Content) (filesystem string, err error)
}

// Mkfs makes a filesystem with options, as provision.Mkfs does, and gives it an identity: a UUID as text.
type Mkfs func(ctx context.Context, v provision.Volume, filesystem, options, uuid string) error

// Config has the parts that Volumes work with.
type Config struct {
	// Boot is the id of the machine's present boot.
	Boot string
	// Journal has the volumes that the node has taken.
	Journal journal.Journal
	Machine Machine
	// Mounter mounts them, and Mkfs makes their filesystems.
	Mounter mount.Mounter
	Mkfs    Mkfs
	// Wishes are the specs of volumes, as far as the node knows them.
	Wishes staging.Wishes
}

// Volumes are the shared disks that the node has taken.
type Volumes struct {
	mount.Mounter
	c Config
}

var (
	_ staging.Disks     = (*Volumes)(nil)
	_ staging.Rescanner = (*Volumes)(nil)
	_ staging.Doubter   = (*Volumes)(nil)
)

// New returns the volumes of a node.
func New(c Config) *Volumes { return &Volumes{Mounter: c.Mounter, c: c} }

// taken returns what the node keeps of a volume that it has taken.
func (v *Volumes) taken(id string) (journal.Kept, error) {
	k, _, err := v.c.Journal.Load(id)
	switch {
	case err != nil:
		return k, err
	case !k.InUse(v.c.Boot):
		return k, fmt.Errorf("%w: this node has not taken a shared disk as volume %s (it is one if its Volume has spec.replication.attachments)", provision.ErrNotFound, id)
	}
	return k, nil
}

// Get implements staging.Disks. It reads the disk only if the volume is not mounted yet.
func (v *Volumes) Get(ctx context.Context, id string) (provision.Volume, error) {
	k, err := v.taken(id)
	if err != nil {
		return provision.Volume{}, err
	}
	out := provision.Volume{ID: id, Content: k.Taken.Content}
	if out.Size, err = v.c.Machine.Size(out.Content); err != nil {
		out.Problem = fmt.Sprintf("its device is gone: %v", err)
		return out, nil
	}
	if k.Taken.Block {
		out.Filesystem = provision.Raw
		return out, nil
	}
	if out.Filesystem, err = v.c.Machine.Mounted(out.Content); err != nil || out.Filesystem != "" {
		return out, err
	}
	d, err := v.c.Machine.Open(out.Content, false)
	if err != nil {
		return provision.Volume{}, err
	}
	defer d.Close()
	found, err := look(d, out.Size, markOf(&k), epochs(&k))
	if err != nil {
		return provision.Volume{}, fmt.Errorf("%w: volume %s: %w", provision.ErrUnavailable, id, err)
	}
	if found, err = v.own(ctx, id, found); err != nil {
		return provision.Volume{}, err
	}
	if out.Filesystem = found.filesystem; found.foreign != "" {
		out.Problem = notEmpty(found.foreign)
	}
	return out, nil
}

// Rescan implements staging.Rescanner: a disk grows on its target, and the kernel goes on with the size that it knows.
func (v *Volumes) Rescan(ctx context.Context, id string) error {
	k, err := v.taken(id)
	if err != nil {
		return err
	}
	return v.c.Machine.Rescan(ctx, k.Taken.Content)
}

// Doubted implements staging.Doubter: the writer before did not end cleanly, and the volume's class has the
// filesystem checked then.
func (v *Volumes) Doubted(ctx context.Context, id string) (bool, error) {
	k, err := v.taken(id)
	if err != nil || !k.Taken.Unclean {
		return false, err
	}
	spec := v.c.Wishes.Spec(ctx, id)
	if spec == nil {
		return false, fmt.Errorf("%w: volume %s: its Volume object, which says whether its filesystem is to be checked, is not known yet", provision.ErrUnavailable, id)
	}
	return spec.Replication.Attachments != nil && spec.Replication.Attachments.CheckFilesystem, nil
}

func notEmpty(what string) string {
	return "its disk has " + what + ", and no filesystem of this volume: Berth writes nothing over it. If it may be lost, wipe the disk (wipefs and blkdiscard --zeroout); else name the right disk"
}

// own takes a filesystem that another volume has left for foreign data. It is one if the volume began on a
// blank disk, and the filesystem is not the one that was made for it. An administrator who names a disk in a
// Volume of theirs may want the data on it.
func (v *Volumes) own(ctx context.Context, id string, found content) (content, error) {
	if found.filesystem == "" || found.uuid == uuidOf(id) {
		return found, nil
	}
	spec := v.c.Wishes.Spec(ctx, id)
	switch {
	case spec == nil:
		return found, fmt.Errorf("%w: volume %s: its Volume object, which says whose filesystem its disk has, is not known yet", provision.ErrUnavailable, id)
	case spec.Replication.Attachments == nil || !spec.Replication.Attachments.Blank:
		return found, nil
	}
	return content{foreign: otherwise(found)}, nil
}

// markOf is the mark of the epoch that the node is in.
func markOf(k *journal.Kept) mark { return mark{Volume: k.Volume, Epoch: k.Opened} }

// epochs are those that led to the node's own: a mark may be of each.
func epochs(k *journal.Kept) []lineage.Epoch {
	known := []lineage.Epoch{k.Promise.Epoch, k.Opened}
	for i := range k.Promise.Lineage {
		known = append(known, k.Promise.Lineage[i].Epoch)
	}
	return known
}

// Format implements staging.Disks. It makes the filesystem that the volume lacks, if the disk is empty
// and the node is in an epoch of its own. A raw block volume has nothing to be recorded.
func (v *Volumes) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	k, err := v.taken(r.ID)
	switch {
	case err != nil:
		return provision.Volume{}, err
	case k.Taken.Block != (r.Filesystem == provision.Raw):
		return provision.Volume{}, fmt.Errorf("%w: volume %s was taken as a raw block volume: %v, and filesystem %q is asked for", provision.ErrConflict, r.ID, k.Taken.Block, r.Filesystem)
	case k.Taken.Block:
		return v.Get(ctx, r.ID)
	case r.Filesystem != provision.Ext4 && r.Filesystem != provision.XFS:
		return provision.Volume{}, fmt.Errorf("%w: a shared disk bears ext4 or xfs, not %q", provision.ErrInvalid, r.Filesystem)
	case k.Taken.Epoch != k.Opened || k.GaveUp(k.Opened):
		return provision.Volume{}, fmt.Errorf("%w: volume %s was given up by this node", provision.ErrConflict, r.ID)
	}
	if err := v.make(ctx, &k, r); err != nil {
		return provision.Volume{}, fmt.Errorf("volume %s: %w", r.ID, err)
	}
	return v.Get(ctx, r.ID)
}

// make makes a filesystem on an empty disk, between writing the mark and removing it.
func (v *Volumes) make(ctx context.Context, k *journal.Kept, r provision.FormatRequest) error {
	size, err := v.c.Machine.Size(k.Taken.Content)
	if err != nil {
		return err
	}
	if err := v.large(ctx, r.ID, size); err != nil {
		return err
	}
	m := markOf(k)
	made, err := v.hold(k, func(d Device) (bool, error) {
		found, err := look(d, size, m, epochs(k))
		if err != nil {
			return false, fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
		}
		if found, err = v.own(ctx, r.ID, found); err != nil {
			return false, err
		}
		return begin(d, size, m, found, r.Filesystem)
	})
	if err != nil || made {
		return err
	}
	if err := ctx.Err(); err != nil { // the node may have been fenced
		return err
	}
	disk := provision.Volume{ID: r.ID, Size: size, Content: k.Taken.Content}
	if err := v.c.Mkfs(ctx, disk, r.Filesystem, r.Options, uuidOf(r.ID).String()); err != nil {
		return err
	}
	_, err = v.hold(k, func(d Device) (bool, error) { return true, end(d, size, m, r.Filesystem) })
	return err
}

// large refuses a disk that is smaller than its volume.
func (v *Volumes) large(ctx context.Context, id string, size int64) error {
	spec := v.c.Wishes.Spec(ctx, id)
	switch {
	case spec == nil:
		return fmt.Errorf("%w: its Volume object, which has its size, is not known yet", provision.ErrUnavailable)
	case spec.Capacity.Value() > size:
		return fmt.Errorf("%w: its disk has %d bytes, and its Volume object says %d", provision.ErrConflict, size, spec.Capacity.Value())
	}
	return nil
}

// hold opens the device as its only user.
func (v *Volumes) hold(k *journal.Kept, use func(d Device) (bool, error)) (bool, error) {
	d, err := v.c.Machine.Open(k.Taken.Content, true)
	if err != nil {
		return false, err
	}
	done, err := use(d)
	if closed := d.Close(); err == nil {
		err = closed
	}
	return done, err
}

// begin writes the mark on an empty disk. made says that the filesystem is there already.
func begin(d Device, size int64, m mark, found content, filesystem string) (made bool, err error) {
	switch {
	case found.foreign != "":
		return false, fmt.Errorf("%w: %s", provision.ErrConflict, notEmpty(found.foreign))
	case found.filesystem == filesystem:
		return true, nil
	case found.filesystem != "":
		return false, fmt.Errorf("%w: its disk bears %s, and %s is asked for", provision.ErrConflict, found.filesystem, filesystem)
	}
	if _, err := d.WriteAt(m.bytes(), tailAt(size)); err != nil {
		return false, fmt.Errorf("%w: marking the disk: %w", provision.ErrUnavailable, err)
	}
	return false, nil
}

// end removes the mark from a disk that bears the filesystem. The filesystem may have used the mark's
// place: then there is none to remove.
func end(d Device, size int64, m mark, filesystem string) error {
	head, at := make([]byte, headSize), make([]byte, block)
	if _, err := d.ReadAt(head, 0); err != nil {
		return fmt.Errorf("%w: reading the filesystem that was made: %w", provision.ErrUnavailable, err)
	}
	if got := judge(head, make([]byte, block), m.Volume, nil).filesystem; got != filesystem {
		return fmt.Errorf("%w: mkfs.%s ended, and the disk bears %q", provision.ErrUnavailable, filesystem, got)
	}
	if _, err := d.ReadAt(at, tailAt(size)); err != nil {
		return fmt.Errorf("%w: reading the mark: %w", provision.ErrUnavailable, err)
	}
	if !bytes.Equal(at, m.bytes()) {
		return nil
	}
	if _, err := d.WriteAt(make([]byte, block), tailAt(size)); err != nil {
		return fmt.Errorf("%w: removing the mark: %w", provision.ErrUnavailable, err)
	}
	return nil
}
