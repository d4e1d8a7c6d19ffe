package device

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTheRecordedWipingProgressNeverExceedsTheRealOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Int64Range(1, 1<<50).Draw(t, "length") * 512
		done := rapid.Int64Range(0, length).Draw(t, "done")
		r := record{status: wiping}.wipedTo(done, length)
		if got := partsOf(length, r.wiped); got < 0 || got > done || got >= length {
			t.Fatalf("%d of %d bytes are done, and %d recorded", done, length, got)
		}
		// One part more may be done, and in each part a rest of less than a page is not counted.
		if done-partsOf(length, r.wiped) > length/wipedParts+wipedParts*4096 {
			t.Fatalf("%d of %d bytes are done, and %d of 1024 parts recorded", done, length, r.wiped)
		}
		back, err := parseRecord(newDrive(1<<40, 512).recordOf(claimID, wiping).wipedTo(done, length).partition(), newDrive(1<<40, 512).Geometry)
		if err != nil || back.wiped != r.wiped || back.id != claimID {
			t.Fatalf("read %+v, %v", back, err)
		}
	})
}

// Berth does not write such a table, and cannot know its meaning.
func TestAVolumeThatIsRecordedAsWipedAndAsNotDeletedIsNotActedOn(t *testing.T) {
	d := newDrive(8<<20, 512)
	r := d.recordOf(claimID, ext4)
	r.wiped = 3
	if c := d.after(d.Writes(r.partition())).look(); c.kind == ours && c.problem == "" {
		t.Errorf("the disk bears %+v", c)
	}
}

func TestOfTwoTablesTheOneIsBelievedThatSaysLess(t *testing.T) {
	d := newDrive(8<<20, 512)
	less, more := d.recordOf(claimID, wiping), d.recordOf(claimID, wiping)
	less.wiped, more.wiped = 2, 7
	for name, order := range map[string][2]record{"the primary": {less, more}, "the backup": {more, less}} {
		// The writes are of the backup first, and then of the primary.
		at := d.after(d.Writes(order[1].partition())).after(d.Writes(order[0].partition())[2:])
		if c := at.look(); c.record != less || c.problem != "" || c.complete {
			t.Errorf("%s says less: %+v", name, c)
		}
	}
}
