package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var someUUID = [16]byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 1, 2, 3, 4, 5, 6, 7}

const someText = "01234567-89ab-cdef-0001-020304050607"

func TestTheSuperblockOfADiskNamesItsFilesystem(t *testing.T) {
	disk := func(change func(b []byte)) string {
		b := make([]byte, superblockAt+4096)
		super := b[superblockAt:]
		copy(super[fsidAt:], someUUID[:])
		copy(super[magicAt:], magic)
		super[diskAt] = 3
		copy(super[labelAt:], "data\x00old")
		change(b)
		path := filepath.Join(t.TempDir(), "disk")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		node, label string
		ok          bool
	}{
		"its label":        {disk(func([]byte) {}), "data", true},
		"another label":    {disk(func([]byte) {}), "dat", false},
		"no btrfs":         {disk(func(b []byte) { b[superblockAt+magicAt] = 'X' }), "data", false},
		"an unending name": {disk(func(b []byte) { copy(b[superblockAt+labelAt:], bytes.Repeat([]byte("a"), labelLength)) }), "data", false},
		"too small":        {filepath.Join(t.TempDir(), "none"), "data", false},
	} {
		p, ok := superblock(tc.node, tc.label)
		if ok != tc.ok || ok && p != (part{someText, 3}) {
			t.Errorf("%s: %+v, %v", name, p, ok)
		}
	}
}

func TestItemsOfTheTreeOfRootsTellASubvolumeAndItsPlace(t *testing.T) {
	item := make([]byte, 439)
	copy(item[uuidAt:], someUUID[:])
	place := append(binary.LittleEndian.AppendUint64(nil, 300), "0123456789data"...)
	got := Root{}.with(256, itemRoot, 0, item).with(256, itemPlace, 5, place)
	if want := (Root{Subvolume: Subvolume{256, someText}, Parent: 5, Directory: 300, Name: Data}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	deleted := Root{}.with(257, itemRoot, 0, item)
	if deleted.ID != 257 || deleted.Parent != 0 {
		t.Errorf("one that was deleted is %+v", deleted)
	}
	if cut := (Root{}).with(258, itemRoot, 0, item[:100]).with(258, itemPlace, 5, place[:4]); cut.UUID != "" || cut.Parent != 0 {
		t.Errorf("items that are cut off are %+v", cut)
	}
}

func TestAnIdentityTellsAllThatASubvolumeIs(t *testing.T) {
	s := Subvolume{256, someText}
	all := map[string]bool{}
	for _, is := range []string{
		string(Identity("a", s)), string(Identity("b", s)), string(Identity("a", Subvolume{257, someText})), string(Identity("a", Subvolume{256, "c"})),
	} {
		all[is] = true
	}
	if len(all) != 4 || !all["btrfs:a 256 "+someText] {
		t.Errorf("the identities are %v", all)
	}
}

func TestOnlyTheDisksOnWhichAFilesystemWasFoundAreItsOwn(t *testing.T) {
	root, own := t.TempDir(), map[string]string{"8:0": "/dev/sda"}
	for path, text := range map[string]string{
		"udev/b8:0":        "E:ID_FS_UUID=" + someText + "\n",
		"udev/b8:16":       "S:disk/by-id/x\nE:ID_FS_UUID=" + someText + "\nE:ID_FS_TYPE=btrfs\n",
		"udev/b8:32":       "E:ID_FS_UUID=" + someText + "0\n",
		"udev/c1:3":        "E:ID_FS_UUID=" + someText + "\n",
		"devices/sda/dev":  "8:0\n",
		"devices/sdb/dev":  "8:16\n",
		"devices/sdc/size": "1\n",
	} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if got := slices.Collect(maps.Keys(alike(filepath.Join(root, "udev"), someText, own))); !slices.Equal(got, []string{"8:16"}) {
		t.Errorf("by udev's word there are also %v", got)
	}
	if got := slices.Sorted(maps.Values(counted(filepath.Join(root, "devices"), own))); !slices.Equal(got, []string{"/dev/sdb", "/dev/sdc"}) {
		t.Errorf("the kernel also counts %v", got)
	}
	if got := counted(filepath.Join(root, "none"), own); len(got) == 0 {
		t.Error("what the kernel does not show is all its own")
	}
}
