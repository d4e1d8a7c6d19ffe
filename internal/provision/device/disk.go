package device

import (
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// disk holds the facts about one disk.
type disk struct {
	engine.Account
	// pool is its name as a pool.
	pool string
	// Disk is the kernel's description of it; the last one if the disk is missing.
	Disk
	// twins are the kernel's names of all disks that bear this identity, if there are
	// several.
	twins []string
	// content as it was last read.
	content content
	// unreadable is why the last reading failed.
	unreadable error
	// missing is set when the kernel no longer lists a disk that holds a volume.
	missing bool
	// reading is closed when the reading that is under way ends.
	reading chan struct{}
	// turn counts own changes, so that a reading that began before one is dropped;
	// changing is set while one is under way.
	turn     int
	changing bool
	// wipe is the wiping that is under way or failed; nil if there is none.
	wipe *attempt
}

// attempt is one attempt at making a disk empty.
type attempt struct {
	percent int64
	failed  error
}

// of says how the wiping of a deleted volume stands.
func (w *attempt) of(id string) string {
	switch {
	case w == nil:
		return fmt.Sprintf("what volume %s left is to be wiped", id)
	case w.failed != nil:
		return fmt.Sprintf("wiping what volume %s left failed, and is tried again: %v", id, w.failed)
	default:
		return fmt.Sprintf("what volume %s left is being wiped, %d%% is done", id, w.percent)
	}
}

// holds returns the record of the volume on the disk, nil if there is none.
func (d *disk) holds() *record {
	if d.Read.IsZero() || d.content.kind != ours || d.content.record.status == wiping {
		return nil
	}
	return &d.content.record
}

// node returns the path of the partition that a record describes, and whether the kernel
// knows that partition.
func (d Disk) node(r record) (path string, known bool) {
	start, length := r.extent(d.Geometry)
	for _, p := range d.Partitions {
		if p.Start == start && p.Length == length {
			return "/dev/" + p.Name, true
		}
	}
	return "/dev/" + d.partitionName(), false
}

// partitionNumber of every volume.
const partitionNumber = 1

// partitionName returns the kernel's name for the volume's partition.
func (d Disk) partitionName() string {
	if d.Name[len(d.Name)-1] >= '0' && d.Name[len(d.Name)-1] <= '9' {
		return fmt.Sprintf("%sp%d", d.Name, partitionNumber)
	}
	return fmt.Sprintf("%s%d", d.Name, partitionNumber)
}

// same says whether both describe the same disk, under the same name of the kernel.
func (d Disk) same(other Disk) bool {
	return d.Name == other.Name && d.Sequence == other.Sequence && d.Identity == other.Identity && d.Geometry == other.Geometry
}

// equal says whether both descriptions are the same.
func (d Disk) equal(other Disk) bool {
	return d.same(other) && d.Rotational == other.Rotational && slices.Equal(d.Links, other.Links) &&
		slices.Equal(d.Holders, other.Holders) && slices.Equal(d.Partitions, other.Partitions)
}

// trouble returns why nothing may be done with the disk at all; empty if there is no reason.
func (d *disk) trouble() string {
	switch {
	case d.missing:
		return "the disk is gone: plug it in again"
	case len(d.twins) > 0:
		return fmt.Sprintf("%s say the same of themselves, so that none of them can be told from the others: they are two ways to one disk, or copies",
			strings.Join(d.twins, " and "))
	case d.unreadable != nil:
		return fmt.Sprintf("the disk cannot be read: %v", d.unreadable)
	default:
		return ""
	}
}

// closed returns why no volume can be made on the disk although it can be read; empty if
// there is no reason.
func (d *disk) closed() string {
	c := d.content
	switch {
	case c.kind == ours && c.problem != "":
		return c.problem
	case c.kind == ours && c.record.status == wiping:
		return d.wipe.of(c.record.id)
	case c.kind == foreign:
		return fmt.Sprintf("it carries %s: Berth takes only empty disks; clear it if its data is not needed (wipefs --all /dev/%s, then blkdiscard --zeroout /dev/%s)",
			c.what, d.Name, d.Name)
	case c.kind == empty && len(d.Holders) > 0:
		return "it is held by " + strings.Join(d.Holders, ", ")
	case c.kind == empty && len(d.Partitions) > 0:
		return fmt.Sprintf("it is empty, and the kernel knows partitions of it: partprobe /dev/%s makes it forget them", d.Name)
	default:
		return ""
	}
}

func (d *disk) ref() provision.PoolRef {
	return provision.PoolRef{Type: provision.Device, Name: d.pool}
}

// volume returns the disk's volume as callers see it.
func (d *disk) volume() provision.Volume {
	r := d.content.record
	start, size := r.extent(d.Geometry)
	device, _ := d.node(r)
	v := provision.Volume{
		ID: r.id, Pool: d.ref(), Size: size, Filesystem: string(r.status),
		Content: provision.Content{Source: device, Identity: provision.PartitionIdentity(d.Sequence, d.Disk.Identity, start, size)},
	}
	if v.Problem = d.trouble(); v.Problem == "" {
		v.Problem = d.content.problem
	}
	return v
}

// figures returns the pool without its volume.
func (d *disk) figures() provision.Pool {
	first, last := d.Whole()
	total := (last - first + 1) * d.Block
	p := provision.Pool{PoolRef: d.ref(), Total: total, Free: total, Unit: total, Media: provision.MediaSSD}
	if d.Rotational {
		p.Media = provision.MediaHDD
	}
	p.Paths = append([]string{"/dev/" + d.Name}, d.Links...)
	if d.holds() != nil {
		p.Total = d.volume().Size // less than the disk has, if it grew since
		p.Unit, p.Free = p.Total, 0
		p.Problem = d.trouble()
		return p
	}
	if p.Problem = d.trouble(); p.Problem == "" {
		p.Problem = d.closed()
	}
	if p.Problem != "" {
		p.Foreign, p.Free = p.Total, 0
	}
	return p
}

// report returns the disk as callers see it.
func (d *disk) report() provision.Pool {
	p := d.figures()
	if d.holds() != nil {
		p.Volumes = []provision.Volume{d.volume()}
		if p.Problem == "" {
			p.Problem = d.content.problem
		}
	}
	if v, ok := d.remnant(); ok {
		p.Wiping, p.Foreign = []provision.Volume{v}, p.Foreign-v.Size
	}
	return p
}

// remnant returns the deleted volume whose data is still on the disk.
func (d *disk) remnant() (v provision.Volume, ok bool) {
	if c := d.content; d.Read.IsZero() || c.kind != ours || c.record.status != wiping {
		return v, false
	}
	_, size := d.content.record.extent(d.Geometry)
	v = provision.Volume{ID: d.content.record.id, Pool: d.ref(), Size: size}
	if d.wipe != nil && d.wipe.failed != nil {
		v.Problem = d.wipe.failed.Error()
	}
	return v, true
}
