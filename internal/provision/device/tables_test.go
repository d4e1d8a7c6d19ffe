package device

import "testing"

// Formatting and deleting write the backup first, so a crash between leaves the newer word
// in one table alone, and either may be the one that was not written.
func TestOfTwoTablesTheLaterStepIsBelieved(t *testing.T) {
	d := newDrive(8<<20, 512)
	steps := []record{d.recordOf(claimID, blank), d.recordOf(claimID, ext4), d.recordOf(claimID, wiping)}
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
