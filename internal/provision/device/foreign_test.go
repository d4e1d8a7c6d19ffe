package device_test

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
	"berth.dev/berth/internal/provision/device/gpt"
)

// This is the main point: Berth never writes to data of others.
func TestADiskWithAnythingOnItIsNeverWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		what   string // that the problem names
		offset int64
		bytes  string
	}{
		"an ext filesystem":                          {"ext filesystem", 1080, "\x53\xef"},
		"an xfs filesystem":                          {"xfs", 0, "XFSB"},
		"a physical volume":                          {"LVM", 512, "LABELONE"},
		"an encrypted volume":                        {"encrypted", 0, "LUKS\xba\xbe"},
		"a boot record":                              {"partition table", 510, "\x55\xaa"},
		"a damaged partition table":                  {"partition table", 512, "EFI PART"},
		"a backup of a partition table":              {"data", diskSize - 512, "EFI PART"},
		"a filesystem that lost the partition table": {"without its partition table", mib + 1080, "\x53\xef"},
		"a byte at the very beginning":               {"data", 0, "x"},
		"a byte at the very end":                     {"data", diskSize - 1, "x"},
		"a RAID member with the mark at the end":     {"data", diskSize - 4096, "\xfc\x4e\x2b\xa9"},
	} {
		t.Run(name, func(t *testing.T) {
			m := disks()
			m.WriteDisk("sda", tc.offset, tc.bytes) // before Berth looks at it: an event takes a moment
			n := start(t, m)
			m.CrashAfter(0) // any write would end the process, and is counted
			p := n.report(t, pool("naa.a"))
			if p == nil || !strings.Contains(p.Problem, tc.what) || !strings.Contains(p.Problem, "wipefs --all /dev/sda") || p.Free != 0 || p.Foreign != p.Total {
				t.Errorf("reported %+v", p)
			}
			_, err := n.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool("naa.a"), Size: 1})
			if !errors.Is(err, provision.ErrNoSpace) || !strings.Contains(err.Error(), tc.what) {
				t.Errorf("creating: %v, want ErrNoSpace and what there is", err)
			}
			n.delete(t, id)
			if effects := m.Live(); effects != 0 {
				t.Errorf("there were %d tries to change the disk", effects)
			}
		})
	}
}

func TestADiskThatIsUsedBetweenReportAndCreateIsNotTaken(t *testing.T) {
	for name, use := range map[string]func(*devicetest.Machine){
		"written without an event": func(m *devicetest.Machine) { m.Medium("sda").Put([]byte("XFSB"), 0) },
		"held by another device":   func(m *devicetest.Machine) { m.Edit("sda", func(d *device.Disk) { d.Holders = []string{"md0"} }) },
		"partitioned": func(m *devicetest.Machine) {
			m.Edit("sda", func(d *device.Disk) {
				d.Partitions = []device.Partition{{Name: "sda1", Number: 1, Start: mib, Length: mib}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := disks()
			n := newNode(t, m) // does not watch
			if p := n.report(t, pool("naa.a")); !free(p) {
				t.Fatalf("reported %+v", p)
			}
			use(m)
			m.CrashAfter(0)
			_, err := n.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool("naa.a"), Size: 1})
			if !errors.Is(err, provision.ErrNoSpace) {
				t.Errorf("creating: %v, want ErrNoSpace", err)
			}
			if effects := m.Live(); effects != 0 {
				t.Errorf("there were %d tries to change the disk", effects)
			}
			if p := n.report(t, pool("naa.a")); p.Problem == "" || p.Free != 0 {
				t.Errorf("now reported %+v", p)
			}
		})
	}
}

// The last moment: the provisioner has decided and is about to open the disk.
func TestADiskThatIsUsedAtTheMomentItIsTakenIsNotTaken(t *testing.T) {
	for name, use := range map[string]func(*devicetest.Machine){
		"written":                func(m *devicetest.Machine) { m.Medium("sda").Put([]byte("x"), 0) },
		"held by another device": func(m *devicetest.Machine) { m.Edit("sda", func(d *device.Disk) { d.Holders = []string{"md0"} }) },
		"partitioned": func(m *devicetest.Machine) {
			m.Edit("sda", func(d *device.Disk) {
				d.Partitions = []device.Partition{{Name: "sda1", Number: 1, Start: mib, Length: mib}}
			})
		},
		"replaced by another disk": func(m *devicetest.Machine) {
			m.Pull("sda")
			m.Plug(devicetest.Disk("sda", "naa.z", diskSize), devicetest.NewMedium())
		},
		"gone": func(m *devicetest.Machine) { m.Pull("sda") },
	} {
		t.Run(name, func(t *testing.T) {
			m := disks()
			n := start(t, m)
			m.BeforeHold(func() {
				use(m)
				m.CrashAfter(0)
			})
			if v, err := n.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool("naa.a"), Size: 1}); err == nil {
				t.Errorf("created %+v", v)
			}
			if effects := m.Live(); effects != 0 {
				t.Errorf("there were %d tries to change the disk", effects)
			}
		})
	}
}

func TestADiskThatOthersHoldOpenIsNotTaken(t *testing.T) {
	m := disks()
	n := start(t, m)
	holder, err := m.Hold("sda")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Create(t.Context(), provision.CreateRequest{ID: id, Pool: pool("naa.a"), Size: 1}); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("creating: %v, want ErrUnavailable", err)
	}
	holder.Close()
	n.create(t, id, pool("naa.a"))
}

func TestADiskThatIsClearedIsOffered(t *testing.T) {
	m := disks()
	n := start(t, m)
	m.WriteDisk("sda", 0, "XFSB")
	n.await(t, pool("naa.a"), "a closed disk", func(p *provision.Pool) bool { return p.Problem != "" })
	m.WriteDisk("sda", 0, "\x00\x00\x00\x00")
	n.await(t, pool("naa.a"), "a free disk", free)
	n.create(t, id, pool("naa.a"))
}

func TestAMountedVolumeIsInUse(t *testing.T) {
	m := disks()
	n := start(t, m)
	v := n.create(t, id, pool("naa.a"))
	unmount := m.Mount(v.Content.Source)
	if err := n.Delete(t.Context(), id); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("deleting: %v, want ErrInUse", err)
	}
	if got, err := n.Get(t.Context(), id); err != nil || got != v {
		t.Errorf("got %+v, %v, want %+v", got, err, v)
	}
	unmount()
	n.delete(t, id)
}

// Others edit the table of a volume's disk: the volume is shown with a problem, and nothing
// is done to it.
func TestAVolumeWhoseTableOthersChangedIsLeftAlone(t *testing.T) {
	m := disks()
	n := start(t, m)
	v := n.create(t, id, pool("naa.a"))
	g := gpt.Geometry{Size: diskSize, Block: 512}
	theirs := gpt.Partition{Type: gpt.GUID{1}, ID: gpt.GUID{2}, First: 4096, Last: 5000, Name: "theirs"}
	for _, w := range g.Writes(theirs)[2:] {
		m.Medium("sda").Put(w.Data, w.Offset)
	}
	m.WriteDisk("sda", 0, "")
	m.CrashAfter(0)
	got, err := n.Get(t.Context(), id)
	if err == nil && got.Problem == "" {
		n.await(t, pool("naa.a"), "the problem", func(p *provision.Pool) bool { return p.Problem != "" })
		got, err = n.Get(t.Context(), id)
	}
	if err != nil || got.ID != v.ID || !strings.Contains(got.Problem, "others wrote") {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := n.Delete(t.Context(), id); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("deleting: %v, want ErrUnavailable", err)
	}
	if _, err := n.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Ext4}); !errors.Is(err, provision.ErrUnavailable) || n.mkfs.made > 0 {
		t.Errorf("formatting: %v, want ErrUnavailable; %d filesystems were made", err, n.mkfs.made)
	}
	if effects := m.Live(); effects != 0 {
		t.Errorf("there were %d tries to change the disk", effects)
	}
}

// No event told that the disk was overwritten: Berth reads the disk itself before mkfs.
func TestNoFilesystemIsMadeOnAVolumeThatOthersOverwrote(t *testing.T) {
	m := disks()
	n := newNode(t, m) // does not watch
	n.create(t, id, pool("naa.a"))
	g := gpt.Geometry{Size: diskSize, Block: 512}
	for _, w := range g.Writes(gpt.Partition{Type: gpt.GUID{1}, ID: gpt.GUID{2}, First: 2048, Last: 5000, Name: "theirs"}) {
		m.Medium("sda").Put(w.Data, w.Offset)
	}
	_, err := n.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Ext4})
	if !errors.Is(err, provision.ErrConflict) || n.mkfs.made > 0 {
		t.Errorf("formatting: %v, want ErrConflict; %d filesystems were made", err, n.mkfs.made)
	}
}

func TestARequestThatADiskCannotServeIsRefused(t *testing.T) {
	n := start(t, disks())
	for name, tc := range map[string]struct {
		request provision.CreateRequest
		want    error
	}{
		"a volume in a pod's spec": {provision.CreateRequest{ID: "inline-a", Inline: provision.Inline{PodUID: "a", Name: "b"}}, provision.ErrInvalid},
		"a copy":                   {provision.CreateRequest{ID: id, Source: provision.Source{Volume: "pvc-1"}}, provision.ErrUnsupported},
		"an id that is too long":   {provision.CreateRequest{ID: "pvc-" + strings.Repeat("a", 40)}, provision.ErrInvalid},
	} {
		tc.request.Pool, tc.request.Size = pool("naa.a"), 1
		if _, err := n.Create(t.Context(), tc.request); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}
