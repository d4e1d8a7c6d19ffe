package device

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"

	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/device/gpt"
)

const mebibyte = 1 << 20

const (
	// headSize and tailSize are how many bytes Berth reads at the beginning and at the end
	// of every disk. Partitions begin at the second MiB: a filesystem there is the only
	// trace of a lost table.
	headSize = 2 * mebibyte
	tailSize = mebibyte
	// minFirst and minTail are how many bytes a table takes at either end, at least.
	minFirst = mebibyte
	minTail  = 64 << 10
	// minDisk is the smallest disk that is looked at.
	minDisk = 8 * mebibyte
)

// content describes the data on a disk.
type content struct {
	kind kind
	// what names the data on a foreign disk, for people.
	what string
	// record of the volume, and whether both tables are complete.
	record   record
	complete bool
	// problem is why the record must not be acted on: others changed its table. Empty if
	// there is none.
	problem string
}

type kind int

const (
	empty kind = iota
	foreign
	ours
)

// ends are buffers into which the ends of disks are read, again and again.
var ends = sync.Pool{New: func() any { return new([headSize + tailSize]byte) }}

// look reads a disk.
func look(r io.ReaderAt, g gpt.Geometry) (content, error) {
	b := ends.Get().(*[headSize + tailSize]byte) //nolint:forcetypeassert // nothing else is put there
	defer ends.Put(b)
	i := gpt.Image{Geometry: g, Head: b[:headSize], Tail: b[headSize:]}
	if _, err := r.ReadAt(i.Head, 0); err != nil {
		return content{}, fmt.Errorf("reading its beginning: %w", err)
	}
	if _, err := r.ReadAt(i.Tail, g.Size-tailSize); err != nil {
		return content{}, fmt.Errorf("reading its end: %w", err)
	}
	return judge(i), nil
}

// judge returns the content of a disk, by its beginning and end.
func judge(i gpt.Image) content {
	if blockdev.Zeros(i.Head) && blockdev.Zeros(i.Tail) {
		return content{kind: empty}
	}
	primary, backup := i.Primary(), i.Backup()
	switch {
	case claimed(primary) && claimed(backup):
		return later(judgeTable(i, primary), judgeTable(i, backup))
	case claimed(primary):
		return alone(judgeTable(i, primary), backup)
	case claimed(backup):
		return alone(judgeTable(i, backup), primary)
	case primary.Valid || backup.Valid:
		return content{kind: foreign, what: "a partition table"}
	}
	for _, entry := range []*gpt.Partition{backup.Entry, primary.Entry} {
		if c, ok := begun(i, entry); ok {
			return c
		}
	}
	return content{kind: foreign, what: blockdev.Describe(i.Head)}
}

// claimed says whether a table has a partition of Berth's. A table that is not valid has no
// partition at all.
func claimed(t gpt.Table) bool {
	return slices.ContainsFunc(t.Partitions, func(p gpt.Partition) bool {
		_, ours := isBerths(p)
		return ours
	})
}

func judgeTable(i gpt.Image, t gpt.Table) content {
	c := content{kind: ours}
	for _, p := range t.Partitions {
		if _, ours := isBerths(p); !ours {
			continue
		}
		r, err := parseRecord(p, i.Geometry)
		if err != nil {
			return content{kind: foreign, what: fmt.Sprintf("a partition table of Berth's that others changed: %v", err)}
		}
		c.record = r
	}
	if len(t.Partitions) != 1 {
		c.problem = "others added partitions to the disk"
	}
	c.complete = complete(i, c.record)
	return c
}

// complete says whether all of a record's table is there.
func complete(i gpt.Image, r record) bool {
	for _, w := range i.Writes(r.partition()) {
		if !i.Has(w) {
			return false
		}
	}
	return true
}

// later chooses between two valid tables. While the volume is being wiped, it chooses the one
// that says that less is done.
func later(primary, backup content) content {
	switch {
	case backup.kind != ours:
		return contradicted(primary)
	case primary.kind != ours:
		return contradicted(backup)
	}
	a, b := primary.record, backup.record
	chosen := primary
	if b.status.rank() > a.status.rank() || b.status == a.status && b.wiped < a.wiped {
		chosen = backup
	}
	chosen.problem = cmp.Or(primary.problem, backup.problem)
	same := a
	same.status, same.wiped = b.status, b.wiped
	if same != b || a.status != b.status && a.status.rank() == b.status.rank() {
		chosen.problem = fmt.Sprintf("its two partition tables disagree: one names volume %s, the other %s", a.id, b.id)
	}
	return chosen
}

// alone judges a record that only one of the tables bears: the other is damaged, or others wrote it.
func alone(c content, other gpt.Table) content {
	if other.Valid {
		return contradicted(c)
	}
	return c
}

// contradicted gives a record the problem that others wrote the other table.
func contradicted(c content) content {
	c.problem = "others wrote one of the disk's two partition tables"
	return c
}

// begun recognises a table of which only an entry was written yet, or is left. The rest of
// the place of a table must be zeros, or belong to that entry.
func begun(i gpt.Image, entry *gpt.Partition) (content, bool) {
	if entry == nil {
		return content{}, false
	}
	r, err := parseRecord(*entry, i.Geometry)
	if err != nil {
		return content{}, false
	}
	rest := gpt.Image{Geometry: i.Geometry, Head: bytes.Clone(i.Head[:minFirst]), Tail: bytes.Clone(i.Tail)}
	for _, w := range i.Writes(r.partition()) {
		if rest.Has(w) {
			rest.Clear(w)
		}
	}
	return content{kind: ours, record: r}, blockdev.Zeros(rest.Head) && blockdev.Zeros(rest.Tail)
}
