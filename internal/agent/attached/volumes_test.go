package attached

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/journal/journaltest"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

const (
	id   = "pvc-00000000-0000-0000-0000-000000000001"
	boot = "boot"
	size = 16 << 20
)

func epoch(n uint64) lineage.Epoch { return lineage.Epoch{Number: n, ID: "id" + string(rune('0'+n))} }

// machine has one device, in memory.
type machine struct {
	data    []byte
	mounted string
	// gone, unsized, unopened, held, unlisted, unread and unclosed are the errors of a device that went, of
	// its size, of opening it at all or as its only user, of the mount table, of reading its beginning or
	// its end, and of closing it.
	gone, unsized, unopened, held, unlisted, unread, unclosed error
	end                                                       bool
	reads, made, rescans                                      int
	// marked is called when the mark was written, and makes in place of mkfs, if set.
	marked func()
	makes  func()
	// cut is how many writes and runs of mkfs are left until the machine loses its power; below zero: it never does.
	cut int
	// half: mkfs had written only its first half when the power went.
	half  bool
	specs map[string]*v1alpha1.VolumeSpec
}

var errCut = errors.New("the power is gone")

func (m *machine) effect() error {
	if m.cut == 0 {
		return errCut
	}
	m.cut--
	return nil
}

func (m *machine) Rescan(context.Context, provision.Content) error { m.rescans++; return m.gone }

func (m *machine) Open(_ provision.Content, hold bool) (Device, error) {
	if hold && m.held != nil {
		return m, m.held
	}
	return m, cmp.Or(m.gone, m.unopened)
}

func (m *machine) Size(provision.Content) (int64, error) {
	return int64(len(m.data)), cmp.Or(m.gone, m.unsized)
}
func (m *machine) Mounted(provision.Content) (string, error)              { return m.mounted, m.unlisted }
func (m *machine) Close() error                                           { return m.unclosed }
func (m *machine) Spec(_ context.Context, id string) *v1alpha1.VolumeSpec { return m.specs[id] }

func (m *machine) ReadAt(b []byte, at int64) (int, error) {
	m.reads++
	if m.unread != nil && m.end == (at > 0) {
		return 0, m.unread
	}
	return copy(b, m.data[at:]), nil
}

func (m *machine) WriteAt(b []byte, at int64) (int, error) {
	if err := m.effect(); err != nil {
		return 0, err
	}
	n := copy(m.data[at:], b)
	if m.marked != nil {
		m.marked()
	}
	return n, nil
}

func (m *machine) mkfs(_ context.Context, v provision.Volume, filesystem, _, uuid string) error {
	if v.ID != id || v.Content.Source != "/dev/sdx" {
		return errors.New("mkfs runs for another device")
	}
	m.made++
	if m.makes != nil {
		m.makes()
		return nil
	}
	err := m.effect()
	if err != nil && !m.half {
		return err
	}
	copy(m.data[1<<20:], "the first half of a filesystem")
	if err == nil {
		m.format(filesystem)
		if uuid != uuidOf(id).String() {
			return errors.New("mkfs is given another volume's UUID")
		}
		at := map[string]int64{provision.Ext4: ext4UUID, provision.XFS: xfsUUID}[filesystem]
		own := uuidOf(id)
		copy(m.data[at:], own[:])
	}
	return err
}

func (m *machine) format(filesystem string) {
	if filesystem == provision.XFS {
		copy(m.data, xfsMagic)
	} else {
		copy(m.data[ext4At:], ext4Magic)
	}
}

// taken returns the volumes of a machine that has taken the volume in an epoch, as a filesystem.
func taken(t *testing.T, m *machine, change ...func(*journal.Kept)) *Volumes {
	t.Helper()
	k := journal.Kept{
		Volume: id, Disk: shared.Disk{Volume: id, Handle: "sim:///a", Identity: "a"}, Opened: epoch(3), Closed: epoch(2),
		Promise: ownership.Promise{Epoch: epoch(3), Lineage: lineage.Lineage{{Epoch: epoch(1)}, {Epoch: epoch(2)}, {Epoch: epoch(3)}}},
		Taken:   journal.Taken{Epoch: epoch(3), Boot: boot, Content: provision.Content{Source: "/dev/sdx", Identity: "disk:1 a"}},
	}
	for _, c := range change {
		c(&k)
	}
	j := journal.Journal{Files: journaltest.New()}
	if err := j.Store(k); err != nil {
		t.Fatal(err)
	}
	return New(Config{Boot: boot, Journal: j, Machine: m, Mkfs: m.mkfs, Wishes: m})
}

func newMachine() *machine {
	return &machine{data: make([]byte, size), cut: -1, specs: map[string]*v1alpha1.VolumeSpec{id: {Capacity: resource.MustParse("16Mi")}}}
}

func ask(fs string) provision.FormatRequest { return provision.FormatRequest{ID: id, Filesystem: fs} }

func TestAFilesystemIsMadeOnceOnAnEmptyDisk(t *testing.T) {
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		m := newMachine()
		v := taken(t, m)
		if got, err := v.Get(t.Context(), id); err != nil || got.Filesystem != "" || got.Problem != "" || got.Size != size {
			t.Fatalf("at first it is %+v, %v", got, err)
		}
		got, err := v.Format(t.Context(), ask(fs))
		if err != nil || got.Filesystem != fs || !blockOf(m).empty() {
			t.Fatalf("it is %+v, %v", got, err)
		}
		before := bytes.Clone(m.data)
		if got, err := v.Format(t.Context(), ask(fs)); err != nil || got.Filesystem != fs || !bytes.Equal(m.data, before) {
			t.Errorf("made again: %+v, %v", got, err)
		}
		if m.made != 1 {
			t.Errorf("mkfs ran %d times", m.made)
		}
	}
}

type place []byte

// blockOf is where the mark is.
func blockOf(m *machine) place { return place(m.data[tailAt(size) : tailAt(size)+block]) }

func (p place) empty() bool { return len(bytes.Trim(p, "\x00")) == 0 }

func TestNothingIsWrittenOverWhatADiskHas(t *testing.T) {
	for name, at := range map[string]int64{
		"in its first block": 0, "in its second MiB": 1<<20 + 5, "in its last block": size - 1, "where the mark goes": tailAt(size),
		"a filesystem of another kind": -1, "another volume's mark": -2, "a mark of an epoch that was never the volume's": -3,
		"the text of a mark in another text": -4, "two filesystems": -5,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine()
			switch at {
			case -1:
				m.format(provision.XFS)
			case -2:
				copy(blockOf(m), mark{Volume: "pvc-00000000-0000-0000-0000-000000000002", Epoch: epoch(2)}.bytes())
			case -3:
				m.format(provision.XFS)
				copy(blockOf(m), mark{Volume: id, Epoch: lineage.Epoch{Number: 2, ID: "forged"}}.bytes())
			case -4:
				copy(blockOf(m), mark{Volume: id, Epoch: epoch(2)}.bytes()[len(markBegins):])
			case -5:
				m.format(provision.Ext4)
				m.format(provision.XFS)
			default:
				m.data[at] = 'x'
			}
			before := bytes.Clone(m.data)
			v := taken(t, m)
			if _, err := v.Format(t.Context(), ask(provision.Ext4)); !errors.Is(err, provision.ErrConflict) {
				t.Errorf("formatted: %v", err)
			}
			fs := map[int64]string{-1: provision.XFS, -3: provision.XFS}[at]
			if got, err := v.Get(t.Context(), id); err != nil || got.Filesystem != fs || (got.Problem == "") != (fs != "") {
				t.Errorf("it counts as %+v, %v", got, err)
			}
			if !bytes.Equal(m.data, before) {
				t.Error("the disk has changed")
			}
		})
	}
}

// The machine loses its power at each effect of the making, and another one goes on in the next epoch.
func TestAFilesystemThatWasBegunIsMadeByTheNextOwner(t *testing.T) {
	for _, half := range []bool{false, true} {
		for cut := range 3 {
			m := newMachine()
			m.cut, m.half = cut, half
			if _, err := taken(t, m).Format(t.Context(), ask(provision.Ext4)); !errors.Is(err, errCut) {
				t.Fatalf("cut %d: %v", cut, err)
			}
			m.cut = -1
			next := taken(t, m, func(k *journal.Kept) {
				k.Opened, k.Taken.Epoch, k.Promise.Epoch = epoch(4), epoch(4), epoch(4)
				k.Promise.Lineage = append(slices.Clone(k.Promise.Lineage), lineage.Branch{Epoch: epoch(4)})
			})
			if got, err := next.Get(t.Context(), id); err != nil || got.Filesystem != "" || got.Problem != "" {
				t.Errorf("cut %d: before it is %+v, %v", cut, got, err)
			}
			if got, err := next.Format(t.Context(), ask(provision.Ext4)); err != nil || got.Filesystem != provision.Ext4 || !blockOf(m).empty() {
				t.Errorf("cut %d: it is %+v, %v", cut, got, err)
			}
		}
	}
}

func TestAFilesystemIsMadeOnlyByTheOwnerOfAnOpenEpochAndWhereItFits(t *testing.T) {
	for name, tc := range map[string]struct {
		kept    func(*journal.Kept)
		machine func(*machine)
		ask     string
		is      error
	}{
		"an epoch that was given up":        {kept: func(k *journal.Kept) { k.Closed = epoch(3) }, is: provision.ErrConflict},
		"an epoch before the one it opened": {kept: func(k *journal.Kept) { k.Taken.Epoch = epoch(2) }, is: provision.ErrConflict},
		"a device that is gone":             {machine: func(m *machine) { m.gone = provision.ErrUnavailable }, is: provision.ErrUnavailable},
		"a device that tells no size":       {machine: func(m *machine) { m.unsized = provision.ErrUnavailable }, is: provision.ErrUnavailable},
		"a device that others hold":         {machine: func(m *machine) { m.held = provision.ErrInUse }, is: provision.ErrInUse},
		"a beginning that cannot be read":   {machine: func(m *machine) { m.unread = errCut }, is: provision.ErrUnavailable},
		"an end that cannot be read":        {machine: func(m *machine) { m.unread, m.end = errCut, true }, is: provision.ErrUnavailable},
		"a volume of an earlier boot":       {kept: func(k *journal.Kept) { k.Taken.Boot = "other" }, is: provision.ErrNotFound},
		"a volume that was not taken":       {kept: func(k *journal.Kept) { k.Taken = journal.Taken{} }, is: provision.ErrNotFound},
		"a raw block volume":                {kept: func(k *journal.Kept) { k.Taken.Block = true }, is: provision.ErrConflict},
		"a filesystem of pools":             {ask: provision.Dataset, is: provision.ErrInvalid},
		"a disk that is smaller":            {machine: func(m *machine) { m.specs[id].Capacity = resource.MustParse("17Mi") }, is: provision.ErrConflict},
		"a Volume object that is not known": {machine: func(m *machine) { m.specs = nil }, is: provision.ErrUnavailable},
		"a disk too small for anything":     {machine: func(m *machine) { m.data = m.data[:minSize-1]; m.specs[id].Capacity = resource.MustParse("1Mi") }, is: provision.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine()
			if tc.machine != nil {
				tc.machine(m)
			}
			v := taken(t, m, func(k *journal.Kept) {
				if tc.kept != nil {
					tc.kept(k)
				}
			})
			fs := tc.ask
			if fs == "" {
				fs = provision.Ext4
			}
			if _, err := v.Format(t.Context(), ask(fs)); !errors.Is(err, tc.is) {
				t.Errorf("got %v, want %v", err, tc.is)
			}
			if m.made > 0 {
				t.Error("mkfs ran")
			}
			if len(bytes.Trim(m.data, "\x00")) > 0 {
				t.Error("something is written")
			}
		})
	}
}

func TestAVolumeInUseIsDescribedWithoutReadingItsDisk(t *testing.T) {
	m := newMachine()
	m.mounted = provision.XFS
	if got, err := taken(t, m).Get(t.Context(), id); err != nil || got.Filesystem != provision.XFS || m.reads > 0 {
		t.Errorf("a mounted one is %+v, %v after %d reads", got, err, m.reads)
	}
	m = newMachine()
	m.data[0] = 'x' // the pod's
	raw := taken(t, m, func(k *journal.Kept) { k.Taken.Block = true })
	if got, err := raw.Format(t.Context(), ask(provision.Raw)); err != nil || got.Filesystem != provision.Raw || m.reads > 0 {
		t.Errorf("a raw one is %+v, %v after %d reads", got, err, m.reads)
	}
	m.gone = provision.ErrNotFound
	if got, err := raw.Get(t.Context(), id); err != nil || !strings.Contains(got.Problem, "gone") || got.Content.Source == "" {
		t.Errorf("one whose device is gone is %+v, %v", got, err)
	}
}

// The disk may have been another volume's before.
func TestAVolumeThatBeganBlankDoesNotShowAFilesystemOfAnotherOne(t *testing.T) {
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		for name, tc := range map[string]struct {
			blank, own, unknown, shown bool
		}{
			"its own":                                    {blank: true, own: true, shown: true},
			"its own, and its object is not known":       {own: true, unknown: true, shown: true},
			"another one's":                              {blank: true},
			"one on a disk that an administrator named":  {shown: true},
			"another one's, and its object is not known": {unknown: true},
		} {
			m := newMachine()
			m.format(fs)
			if tc.own {
				at, own := map[string]int64{provision.Ext4: ext4UUID, provision.XFS: xfsUUID}[fs], uuidOf(id)
				copy(m.data[at:], own[:])
			}
			m.specs[id].Replication.Attachments = &v1alpha1.Attachments{Blank: tc.blank}
			if tc.unknown {
				m.specs = nil
			}
			before := bytes.Clone(m.data)
			v := taken(t, m)
			got, err := v.Get(t.Context(), id)
			if shown := err == nil && got.Problem == "" && got.Filesystem == fs; shown != tc.shown || err == nil && !shown && got.Filesystem != "" {
				t.Errorf("%s, %s: %+v, %v", fs, name, got, err)
			}
			if _, err := v.Format(t.Context(), ask(fs)); !tc.unknown && (err == nil) != tc.shown {
				t.Errorf("%s, %s: made with %v", fs, name, err)
			}
			if !bytes.Equal(m.data, before) {
				t.Errorf("%s, %s: the disk has changed", fs, name)
			}
		}
	}
}

func TestADiskIsAskedForItsSizeWhereItIsTaken(t *testing.T) {
	m := newMachine()
	if err := taken(t, m).Rescan(t.Context(), id); err != nil || m.rescans != 1 {
		t.Errorf("%v after %d", err, m.rescans)
	}
	err := taken(t, m, func(k *journal.Kept) { k.Taken = journal.Taken{} }).Rescan(t.Context(), id)
	if !errors.Is(err, provision.ErrNotFound) || m.rescans != 1 {
		t.Errorf("a volume that was not taken: %v after %d", err, m.rescans)
	}
}

func TestAFilesystemIsDoubtedAfterAnUncleanEndIfItsClassSaysSo(t *testing.T) {
	unclean := func(k *journal.Kept) { k.Taken.Unclean = true }
	checked := func(is bool) map[string]*v1alpha1.VolumeSpec {
		return map[string]*v1alpha1.VolumeSpec{id: {Replication: v1alpha1.Replication{Attachments: &v1alpha1.Attachments{CheckFilesystem: is}}}}
	}
	for name, tc := range map[string]struct {
		change func(*journal.Kept)
		specs  map[string]*v1alpha1.VolumeSpec
		want   bool
		class  error
	}{
		"an unclean end": {unclean, checked(true), true, nil},
		"an unclean end, and a class without checks": {unclean, checked(false), false, nil},
		"a clean end": {func(*journal.Kept) {}, checked(true), false, nil},
		"an unclean end, and a Volume that is unknown": {unclean, nil, false, provision.ErrUnavailable},
		"a clean end, and a Volume that is unknown":    {func(*journal.Kept) {}, nil, false, nil},
		"an unclean end, and a Volume made by hand":    {unclean, map[string]*v1alpha1.VolumeSpec{id: {}}, false, nil},
		"a volume that the node has not taken":         {func(k *journal.Kept) { k.Taken = journal.Taken{} }, checked(true), false, provision.ErrNotFound},
	} {
		m := newMachine()
		m.specs = tc.specs
		if got, err := taken(t, m, tc.change).Doubted(t.Context(), id); got != tc.want || !errors.Is(err, tc.class) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
