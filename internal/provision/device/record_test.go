package device

import (
	"testing"

	"berth.dev/berth/internal/provision/device/gpt"
)

// Berth cannot know the meaning of such a partition.
func TestAPartitionThatIsNotAsBerthWritesItIsNoRecord(t *testing.T) {
	d := newDrive(8<<20, 512)
	whole := d.recordOf(claimID, ext4).partition()
	if r, err := parseRecord(whole, d.Geometry); err != nil || r != d.recordOf(claimID, ext4) {
		t.Fatalf("as Berth writes it: %+v, %v", r, err)
	}
	for name, change := range map[string]func(*gpt.Partition){
		"a foreign type":                    func(p *gpt.Partition) { p.Type = gpt.GUID{1} },
		"an attribute that Berth never set": func(p *gpt.Partition) { p.Attributes |= 1 },
		"a shortened name that is no UUID":  func(p *gpt.Partition) { p.Name = "pvc-1" },
		"a wipe without a deletion":         func(p *gpt.Partition) { p.Attributes |= 1 << wipedAt },
		"a beginning before the first MiB":  func(p *gpt.Partition) { p.First-- },
		"an end before the beginning":       func(p *gpt.Partition) { p.Last = p.First - 1 },
		"an end in the place of the backup": func(p *gpt.Partition) { p.Last = (d.Size - minTail) / d.Block },
	} {
		p := whole
		if change(&p); p == whole {
			t.Fatalf("%s: nothing changed", name)
		}
		if r, err := parseRecord(p, d.Geometry); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
}
