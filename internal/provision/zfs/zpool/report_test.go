package zpool

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
)

// line returns a line of a report, from the texts of its columns.
func line(texts ...string) string { return strings.Join(texts, "\t") + "\n" }

func TestAReportIsReadByItsColumns(t *testing.T) {
	out := line("tank", "filesystem", "112128", "3892201984", "24576", "24576", "-", "0", "0", "0", "-", "-", "1", "1795245234", "-", "-", "-", "-", "-", "-", "-", "-", "on", "100", "-", "-", "-", "-", "-", "-") +
		line("tank/pvc-1", "volume", "70254592", "3892154368", "12288", "12288", "67108864", "70254592", "-", "-", "tank/a@s", "-", "9", "1795245235",
			"-", "pvc-1", "ext4", "snapshot/snap-1", "none", "none", "-", "-", "-", "101", "shop", "db", "dev", "1-ab", "-", "-") +
		line("tank/pvc-1@snap-2", "snapshot", "0", "-", "12288", "12288", "67108864", "-", "-", "-", "-", "on", "11", "1795245236",
			"-", "pvc-1", "none", "snapshot/snap-1", "none", "snap-2", "-", "1795245230", "-", "102", "shop", "db", "-", "-", "-", "-") +
		line("tank/pvc-3", "filesystem", "98304", "3892154368", "98304", "98304", "-", "33554432", "67108864", "0", "-", "-", "12", "1795245237",
			"-", "pvc-3", "zfs", "none", "none", "none", "-", "-", "noauto", "18446744073709551615", "-", "-", "-", "-", "9:1:{}", "none") +
		line("tank/pvc-3@snap-4", "snapshot", "0", "-", "98304", "0", "-", "-", "-", "-", "-", "-", "13", "1795245238",
			"-", "pvc-3", "zfs", "none", "none", "snap-4", "67108864", "-", "-", "104", "-", "-", "-", "-", "-", "-")
	got, err := Parse([]byte(out))
	want := []Row{
		{
			name: "tank", kind: kindFilesystem, used: 112128, available: 3892201984, referenced: 24576, written: 24576,
			origin: "-", createTXG: 1, creation: 1795245234, pool: "-", volume: "-", filesystem: "-", source: "-", inline: "-", snapshot: "-", size: "-", taken: "-", canMount: "on", guid: "100", namespace: "-", claim: "-", volMode: "-", token: "-", copyFirst: "-", copyRest: "-",
		},
		{
			name: "tank/pvc-1", kind: kindVolume, used: 70254592, available: 3892154368, referenced: 12288, written: 12288,
			volsize: 64 << 20, refreservation: 70254592, origin: "tank/a@s", createTXG: 9, creation: 1795245235,
			pool: "-", volume: "pvc-1", filesystem: "ext4", source: "snapshot/snap-1", inline: none, snapshot: none, size: "-", taken: "-", canMount: "-", guid: "101", namespace: "shop", claim: "db", volMode: "dev", token: "1-ab", copyFirst: "-", copyRest: "-",
		},
		{
			name: "tank/pvc-1@snap-2", kind: kindSnapshot, referenced: 12288, written: 12288, volsize: 64 << 20, origin: "-", deferred: true,
			createTXG: 11, creation: 1795245236, pool: "-", volume: "pvc-1", filesystem: none, source: "snapshot/snap-1", inline: none, snapshot: "snap-2",
			size: "-", taken: "1795245230", canMount: "-", guid: "102", namespace: "shop", claim: "db", volMode: "-", token: "-", copyFirst: "-", copyRest: "-",
		},
		{
			name: "tank/pvc-3", kind: kindFilesystem, used: 98304, available: 3892154368, referenced: 98304, written: 98304,
			refreservation: 32 << 20, refquota: 64 << 20, origin: "-", createTXG: 12, creation: 1795245237,
			pool: "-", volume: "pvc-3", filesystem: "zfs", source: none, inline: none, snapshot: none, size: "-", taken: "-", canMount: "noauto", guid: "18446744073709551615", namespace: "-", claim: "-", volMode: "-", token: "-", copyFirst: "9:1:{}", copyRest: none,
		},
		{
			name: "tank/pvc-3@snap-4", kind: kindSnapshot, referenced: 98304, origin: "-", createTXG: 13, creation: 1795245238,
			pool: "-", volume: "pvc-3", filesystem: "zfs", source: none, inline: none, snapshot: "snap-4", size: "67108864", taken: "-", canMount: "-", guid: "104", namespace: "-", claim: "-", volMode: "-", token: "-", copyFirst: "-", copyRest: "-",
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Row{})); err != nil || diff != "" {
		t.Errorf("%v, rows (-want +got):\n%s", err, diff)
	}
}

func TestAReportThatIsNotUnderstoodIsAnError(t *testing.T) {
	for name, out := range map[string]string{
		"a column too few":     line("tank", "filesystem"),
		"a figure that is not": line("tank", "filesystem", "1.5G", "1", "1", "1", "-", "0", "0", "0", "-", "-", "1", "1", "-", "-", "-", "-", "-", "-", "-", "-", "on", "1", "-", "-", "-", "-", "-", "-"),
	} {
		if rows, err := Parse([]byte(out)); err == nil {
			t.Errorf("%s: %+v", name, rows)
		}
	}
	if z, err := New(nil); err == nil {
		t.Errorf("an empty report gave %+v", z)
	}
}

func TestNamesTellWhereADatasetIs(t *testing.T) {
	for name, want := range map[string][3]string{
		"tank":                                  {"", "", "tank"},
		"tank/pvc-1":                            {"tank", "", "pvc-1"},
		"tank/berth/pvc-1":                      {"tank/berth", "", "pvc-1"},
		"tank/berth/berth-volumes/pvc-1":        {"tank/berth", "berth-volumes", "pvc-1"},
		"tank/berth-trash/pvc-1.2":              {"tank", "berth-trash", "pvc-1"},
		"tank/berth/berth-trash/pvc-1.1/nested": {"tank/berth/berth-trash/pvc-1.1", "", "nested"},
		"tank/berth-copies/pvc-1":               {"tank", "berth-copies", "pvc-1"},
		"tank/berth-copies/pvc-1/7":             {"tank", "berth-copies", "pvc-1"},
		"tank/berth-copies/pvc-1/7/nested":      {"tank/berth-copies/pvc-1/7", "", "nested"},
	} {
		parent, where, id := locate(name)
		if got := [3]string{parent, string(where), id}; got != want {
			t.Errorf("%s is at %q, want %q", name, got, want)
		}
	}
}

func TestTheReservationOfZFSIsChargedOrWithinTheAllowance(t *testing.T) {
	// As ZFS reckons: pointers of 128 bytes, twice, in blocks of 128 KiB, and seven such
	// blocks whatever the size.
	const pointers, block = 1024, 128 << 10
	for _, size := range []int64{Unit, 1 << 30, 1 << 40} {
		for _, volblock := range []int64{8 << 10, DefaultBlock, 128 << 10} {
			blocks, reserved := size/volblock, size+2*7*block
			for blocks > 1 {
				blocks = (blocks + pointers - 1) / pointers
				reserved += 2 * blocks * block
			}
			if over := reserved - Charge(size); over > 2<<20+size/1000 {
				t.Errorf("%d bytes in blocks of %d take %d more than is charged", size, volblock, over)
			}
		}
	}
}

func TestPoolsThatCannotBeAreRefused(t *testing.T) {
	for name, want := range map[string]error{
		"tank":                                provision.ErrPoolMissing,
		"zfs:":                                provision.ErrPoolMissing,
		"zfs:tank/-o":                         provision.ErrPoolMissing,
		"zfs:tank@snap":                       provision.ErrPoolMissing,
		"zfs:tank/" + strings.Repeat("a", 96): provision.ErrInvalid,
	} {
		if _, err := DatasetOf(provision.PoolRef{Type: provision.ZFS, Name: name}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if got, err := DatasetOf(PoolRef("tank/berth")); err != nil || got != "tank/berth" {
		t.Errorf("%s, %v", got, err)
	}
}
