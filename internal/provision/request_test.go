package provision_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
)

const goodID = "pvc-0b0e6f2e-8a4e-4f57-9a53-8b6f3f1f9a10"

func TestVolumeIDsAreGuarded(t *testing.T) {
	for name, tc := range map[string]struct {
		id string
		ok bool
	}{
		"a claim's name":           {goodID, true},
		"a hashed name":            {"vol-" + strings.Repeat("a2", 16), true},
		"an empty id":              {"", false},
		"a prefix alone":           {"pvc-", false},
		"an option":                {"-f", false},
		"a foreign prefix":         {"root", false},
		"a path":                   {"pvc-a/../b", false},
		"a directory":              {"pvc-..", false},
		"upper case":               {"pvc-A", false},
		"a reserved suffix of LVM": {"pvc-a_tmeta", false},
		"a separator":              {"pvc-a b", false},
		"a new line":               {goodID + "\n", false},
		"a hyphen at the end":      {"pvc-a-", false},
		"an id that is too long":   {"pvc-" + strings.Repeat("a", 60), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := provision.CheckID(tc.id); errors.Is(err, provision.ErrInvalid) == tc.ok {
				t.Errorf("CheckID(%q) = %v", tc.id, err)
			}
		})
	}
}

func good() provision.CreateRequest {
	return provision.CreateRequest{
		ID: goodID, Pool: provision.PoolRef{Type: "LVM", Name: "vg-1"}, Size: 1 << 30, Limits: provision.Limits{Spare: 1 << 20, SparePercent: 10},
		Labels: map[string]string{"claim": "data", "namespace": "shop"},
	}
}

// tuned has a request ask for a Tuning in a zpool.
func tuned(how provision.Tuning) func(*provision.CreateRequest) {
	return func(r *provision.CreateRequest) {
		r.Pool, r.Tuning = provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"}, how
	}
}

func TestRequestsThatCanNeverBeMetAreInvalid(t *testing.T) {
	for name, change := range map[string]func(*provision.CreateRequest){
		"no size":                   func(r *provision.CreateRequest) { r.Size = 0 },
		"a negative size":           func(r *provision.CreateRequest) { r.Size = -1 },
		"an absurd size":            func(r *provision.CreateRequest) { r.Size = math.MaxInt64 },
		"a negative spare":          func(r *provision.CreateRequest) { r.Limits.Spare = -1 },
		"an absurd spare":           func(r *provision.CreateRequest) { r.Limits.Spare = math.MaxInt64 },
		"no pool":                   func(r *provision.CreateRequest) { r.Pool.Name = "" },
		"an option as pool":         func(r *provision.CreateRequest) { r.Pool.Name = "-f" },
		"a path as pool":            func(r *provision.CreateRequest) { r.Pool.Name = "../vg" },
		"a directory as pool":       func(r *provision.CreateRequest) { r.Pool.Name = ".." },
		"a label with a space":      func(r *provision.CreateRequest) { r.Labels["claim"] = "a b" },
		"a label with a tag":        func(r *provision.CreateRequest) { r.Labels["claim"] = "a=b" },
		"a label key with =":        func(r *provision.CreateRequest) { r.Labels["a=b"] = "c" },
		"a huge label":              func(r *provision.CreateRequest) { r.Labels["claim"] = strings.Repeat("a", 600) },
		"blocks too small":          tuned(provision.Tuning{BlockSize: 4 << 10}),
		"blocks too large":          tuned(provision.Tuning{BlockSize: 256 << 10}),
		"blocks of no power":        tuned(provision.Tuning{BlockSize: 24 << 10}),
		"blocks of less":            tuned(provision.Tuning{BlockSize: -8 << 10}),
		"two properties":            tuned(provision.Tuning{Compression: "lz4 -o sync=disabled"}),
		"a compression of no level": tuned(provision.Tuning{Compression: "zstd-20"}),
		"blocks in a volume group":  func(r *provision.CreateRequest) { r.Tuning.BlockSize = 16 << 10 },
		"too many labels": func(r *provision.CreateRequest) {
			for c := 'a'; c <= 'z'; c++ {
				r.Labels[string(c)] = ""
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			change(&r)
			if err := r.Check(); !errors.Is(err, provision.ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
		})
	}
	if err := good().Check(); err != nil {
		t.Errorf("the request they are made from is refused: %v", err)
	}
}

func TestOptionsThatZFSKnowsAreAccepted(t *testing.T) {
	for _, o := range []provision.Tuning{
		{}, {BlockSize: 8 << 10}, {BlockSize: 128 << 10}, {Compression: "off"}, {Compression: "on"},
		{Compression: "gzip-9"}, {Compression: "zstd"}, {Compression: "zstd-19"}, {Compression: "zstd-fast"}, {Compression: "zstd-fast-1000"},
	} {
		r := good()
		tuned(o)(&r)
		if err := r.Check(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestOnlyKnownFilesystemsAreMade(t *testing.T) {
	for fs, ok := range map[string]bool{"ext4": true, "xfs": true, "zfs": true, "btrfs": true, "": false, "vfat": false, "ext4 -F": false, "raw": true, "Raw": false} {
		err := provision.FormatRequest{ID: goodID, Filesystem: fs}.Check()
		if errors.Is(err, provision.ErrInvalid) == ok {
			t.Errorf("%q: %v", fs, err)
		}
	}
}

func TestOnlyKnownOptionsMakeAFilesystem(t *testing.T) {
	for name, tc := range map[string]struct {
		filesystem, options string
		ok                  bool
	}{
		"an option of ext4":          {"ext4", "-I 512", true},
		"an option of xfs":           {"xfs", "-m reflink=0", true},
		"an option of xfs for ext4":  {"ext4", "-m reflink=0", false},
		"an unknown option of ext4":  {"ext4", "-U clear", false},
		"an option for a raw device": {"raw", "-I 512", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := provision.FormatRequest{ID: goodID, Filesystem: tc.filesystem, Options: tc.options}.Check()
			if errors.Is(err, provision.ErrInvalid) == tc.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRoundingGivesTheSmallestMultipleThatSuffices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := int64(1) << rapid.IntRange(0, 34).Draw(t, "unit")
		size := rapid.Int64Range(1, provision.MaxSize).Draw(t, "size")
		got := provision.RoundUp(size, unit)
		if got%unit != 0 || got < size || got-size >= unit {
			t.Fatalf("RoundUp(%d, %d) = %d", size, unit, got)
		}
	})
}

func TestEveryFilesystemHasASmallestSize(t *testing.T) {
	for fs, want := range map[string]int64{"ext4": 32 << 20, "xfs": 300 << 20, "": 1} {
		if got := provision.MinSize(fs); got != want {
			t.Errorf("%q: %d bytes, want %d", fs, got, want)
		}
	}
}

func TestOnlyABlankVolumeThatCanBeUsedIsFormatted(t *testing.T) {
	for name, tc := range map[string]struct {
		v    provision.Volume
		met  bool
		want error
	}{
		"blank":                              {provision.Volume{}, false, nil},
		"formatted with the same filesystem": {provision.Volume{Filesystem: provision.XFS}, true, nil},
		"formatted with the same filesystem and not usable": {provision.Volume{Filesystem: provision.XFS, Problem: "suspended"}, true, nil},
		"formatted with another filesystem":                 {provision.Volume{Filesystem: provision.Ext4}, false, provision.ErrConflict},
		"given to a pod as a raw device":                    {provision.Volume{Filesystem: provision.Raw}, false, provision.ErrConflict},
		"an unfinished copy of a raw device":                {provision.Volume{Copying: true, Filesystem: provision.Raw}, false, provision.ErrUnavailable},
		"blank and not usable":                              {provision.Volume{Problem: "suspended"}, false, provision.ErrUnavailable},
		"an unfinished copy of a blank volume":              {provision.Volume{Copying: true}, false, provision.ErrUnavailable},
		"an unfinished copy with the same filesystem":       {provision.Volume{Copying: true, Filesystem: provision.XFS}, false, provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			met, err := provision.FormatRequest{ID: goodID, Filesystem: provision.XFS}.Met(tc.v)
			if met != tc.met || !errors.Is(err, tc.want) {
				t.Errorf("met %t, %v; want %t, %v", met, err, tc.met, tc.want)
			}
		})
	}
}
