package device

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision/device/gpt"
)

// Formatting and deleting write the backup first, so a crash in between leaves the newer state
// in only one table. Either may be the one that was not written.
func TestOfTwoTablesTheLaterStepIsBelieved(t *testing.T) {
	d := newDrive(8<<20, 512)
	steps := []record{d.recordOf(claimID, blank), d.recordOf(claimID, ext4), d.recordOf(claimID, wiping)}
	steps[2].wiped = 3
	for i, earlier := range steps {
		for _, later := range steps[i+1:] {
			for name, order := range map[string][2]record{"the primary": {later, earlier}, "the backup": {earlier, later}} {
				t.Run(string(earlier.status)+" and "+string(later.status)+" in "+name, func(t *testing.T) {
					// The writes are of the backup first, and then of the primary.
					at := d.after(d.Writes(order[1].partition())).after(d.Writes(order[0].partition())[2:])
					if c := at.look(); c.record != later || c.problem != "" || c.complete {
						t.Errorf("the disk bears %+v", c)
					}
				})
			}
		}
	}
}

func TestTwoTablesThatNameDifferentVolumesAreAProblem(t *testing.T) {
	d := newDrive(8<<20, 512)
	mine, theirs := d.recordOf(claimID, ext4), d.recordOf(claimID, ext4)
	theirs.guid[0]++
	other := d.recordOf(claimID, "xfs")
	for name, backup := range map[string]record{"another partition": theirs, "another filesystem": other} {
		at := d.after(d.Writes(backup.partition())).after(d.Writes(mine.partition())[2:])
		if c := at.look(); c.problem == "" {
			t.Errorf("%s: the disk bears %+v and no problem", name, c)
		}
	}
}

// A table of Berth's types that is not as Berth writes it was changed by others, who may need it.
func TestAVolumeOfWhichOneTableIsNotAsBerthWritesItHasAProblem(t *testing.T) {
	d := newDrive(8<<20, 512)
	for _, how := range []status{blank, ext4} {
		mine, strange := d.recordOf(claimID, how), d.recordOf("not-a-volume", how)
		for name, order := range map[string][2]record{"the primary": {strange, mine}, "the backup": {mine, strange}} {
			at := d.after(d.Writes(order[1].partition())).after(d.Writes(order[0].partition())[2:])
			if c := at.look(); c.kind != ours || c.record != mine || !strings.Contains(c.problem, "others wrote one") {
				t.Errorf("%s is not: the disk bears %+v", name, c)
			}
		}
	}
}

func TestAPartitionThatOthersAddedToOneTableIsAProblem(t *testing.T) {
	d := newDrive(8<<20, 512)
	writes := func() []gpt.Write { return d.Writes(d.recordOf(claimID, ext4).partition()) }
	for name, at := range map[string]drive{
		"the primary": d.after(writes()).after(second(writes())[2:]),
		"the backup":  d.after(second(writes())).after(writes()[2:]),
		"both":        d.after(second(writes())),
	} {
		if c := at.look(); c.kind != ours || c.problem != "others added partitions to the disk" {
			t.Errorf("%s: the disk bears %+v", name, c)
		}
	}
}

// A lone entry is a volume that was begun only if nothing else is where a table goes.
func TestAnEntryOfATableBesideAnythingElseIsForeign(t *testing.T) {
	d := newDrive(8<<20, 512)
	writes := d.Writes(d.recordOf(claimID, blank).partition())
	for name, at := range map[string]drive{
		"a byte at the beginning": d.after(append(writes[:1:1], gpt.Write{Offset: 100, Data: []byte("x")})),
		"a byte at the end":       d.after(append(writes[:1:1], gpt.Write{Offset: d.Size - mebibyte/2, Data: []byte("x")})),
		"no name in the entry":    d.after(d.Writes(record{}.partition())[:1]),
	} {
		if c := at.look(); c.kind != foreign {
			t.Errorf("%s: the disk bears %+v", name, c)
		}
	}
}

func TestATableOfOthersIsNamedAsOneByEitherOfItsCopies(t *testing.T) {
	d := newDrive(8<<20, 512)
	writes := d.Writes(gpt.Partition{Type: gpt.GUID{1}, ID: gpt.GUID{2}, First: 2048, Last: 4000, Name: "theirs"})
	for name, at := range map[string]drive{"the primary": d.after(writes[2:]), "the backup": d.after(writes[:2])} {
		if c := at.look(); c.kind != foreign || c.what != "a partition table" {
			t.Errorf("%s: the disk bears %+v", name, c)
		}
	}
}

// damaged is a drive that cannot be read at one end.
type damaged struct {
	drive
	at int64
}

var errDamaged = errors.New("input/output error")

func (d damaged) ReadAt(b []byte, offset int64) (int, error) {
	if offset == d.at {
		return 0, errDamaged
	}
	return d.drive.ReadAt(b, offset)
}

// Data that was read from another disk before must not pass for the content of this one.
func TestADiskThatCannotBeReadAtOneEndIsNotJudged(t *testing.T) {
	d := newDrive(8<<20, 512)
	for name, at := range map[string]int64{"the beginning": 0, "the end": d.Size - tailSize} {
		if c, err := look(damaged{d, at}, d.Geometry); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}
