//go:build platform

package device_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
	"berth.dev/berth/internal/provision/device/kernel"
	"berth.dev/berth/internal/run"
)

// Wiping a disk takes a while in a guest; a few sequences of operations are enough
// there, and flags can ask for more.
func init() {
	for name, value := range map[string]string{"rapid.checks": "2", "rapid.steps": "10"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
}

// realDisk is a disk that tests may overwrite.
type realDisk struct {
	t    *testing.T
	path string
}

// realDisks returns two empty disks; it fails without them.
func realDisks(t *testing.T) []realDisk {
	t.Helper()
	var disks []realDisk
	for _, path := range blockdevtest.Disks(t, 2) {
		devicetest.Clear(t, path)
		disks = append(disks, realDisk{t, path})
	}
	return disks
}

// pull takes the disk away, and the result plugs it in again.
func (d realDisk) pull() (plug func()) {
	d.t.Helper()
	d.write("/sys/block/"+filepath.Base(d.path)+"/device/delete", "1")
	return func() {
		hosts, err := filepath.Glob("/sys/class/scsi_host/*/scan")
		if err != nil {
			d.t.Fatal(err)
		}
		for _, host := range hosts {
			d.write(host, "- - -")
		}
		d.command("udevadm", "settle")
	}
}

func (d realDisk) write(path, text string) {
	d.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		d.t.Fatal(err)
	}
}

func (d realDisk) command(program string, args ...string) string {
	d.t.Helper()
	out, err := run.Exec{}.Change(run.Command{Operation: program, Program: program, Args: args})
	if err != nil {
		d.t.Fatalf("%s: %v", program, err)
	}
	return string(out)
}

// running is a provisioner over this machine's disks.
type running struct {
	node
	formats *int
}

func startReal(t *testing.T) running {
	t.Helper()
	mounter, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	formats := new(int)
	made, err := device.New(device.Config{Disks: kernel.Disks{}, Mkfs: func(ctx context.Context, v provision.Volume, fs, options string) error {
		mu.Lock()
		defer mu.Unlock()
		*formats++
		return mounter.Mkfs(ctx, v, fs, options)
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := running{node{Provisioner: made}, formats}
	r.stop = conformance.Watching(t, made.Run)
	return r
}

// pools of the disks, in their order.
func (r running) pools(t *testing.T, disks []realDisk) (refs []provision.PoolRef) {
	t.Helper()
	pools, err := r.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range disks {
		i := slices.IndexFunc(pools, func(p provision.Pool) bool { return slices.Contains(p.Paths, d.path) })
		if i < 0 {
			t.Fatalf("disk %s is not reported: %+v", d.path, pools)
		}
		t.Logf("%s is %+v", d.path, pools[i])
		refs = append(refs, pools[i].PoolRef)
	}
	return refs
}

func TestConformanceOnRealDisks(t *testing.T) { conformance.RunWhole(t, realHarness) }

func TestRealDisksPassTheIdentitySuite(t *testing.T) {
	conformance.RunTwins(t, realHarness)
	conformance.RunAway(t, realHarness)
}

func realHarness(t *testing.T) conformance.Harness {
	disks := realDisks(t)
	r := startReal(t)
	pools := r.pools(t, disks)
	return conformance.Harness{
		Provisioner: r.Provisioner, Pool: pools[0], Pools: pools,
		Restart: func() provision.Provisioner {
			r.stop()
			next := startReal(t)
			*next.formats += *r.formats
			r = next
			return r.Provisioner
		},
		PutForeign: func(string, int64) { disks[0].command("mkfs.ext4", "-q", "-F", disks[0].path) },
		Open: func(v provision.Volume) func() {
			f, err := os.Open(v.Content.Source)
			if err != nil {
				t.Fatal(err)
			}
			return func() { f.Close() }
		},
		Scramble: func(v provision.Volume) { blockdevtest.WriteAt(t, v.Content.Source, strings.Repeat("x", 1<<20), 0) },
		Formats:  func(string) int { return *r.formats },
		Write:    func(v provision.Volume, text string) { blockdevtest.WriteAt(t, v.Content.Source, text, 0) },
		Read:     func(v provision.Volume, bytes int) string { return blockdevtest.ReadAt(t, v.Content.Source, bytes, 0) },
		Twin: func(provision.Volume) func() {
			disks[0].command("dd", "if="+disks[0].path, "of="+disks[1].path, "bs=1M", "count=4", "oflag=direct", "status=none")
			disks[0].command("blockdev", "--rereadpt", disks[1].path)
			return func() { devicetest.Clear(t, disks[1].path) }
		},
		Away: disks[0].pull,
	}
}

func TestOldBytesAreNeverInANewVolumeOnARealDisk(t *testing.T) {
	disks := realDisks(t)
	r := startReal(t)
	ref := r.pools(t, disks)[0]
	const secret = "what nobody else may read"
	rounds := conformance.Rounds(t)
	for round := range rounds {
		v := r.create(t, id, ref)
		places := []int64{0, v.Size - 4096, v.Size / 2, (v.Size / 4096) * int64(round) / int64(rounds) * 4096}
		for _, at := range places {
			if got := blockdevtest.ReadAt(t, v.Content.Source, len(secret), at); strings.Trim(got, "\x00") != "" {
				t.Fatalf("round %d: the volume bears %q at %d", round, got, at)
			}
		}
		for _, at := range places {
			blockdevtest.WriteAt(t, v.Content.Source, secret, at)
		}
		begin := time.Now()
		r.delete(t, id)
		r.await(t, ref, "a free disk", free)
		t.Logf("round %d: wiped %d bytes in %v", round, v.Size, time.Since(begin))
	}
}

func TestOtherProgramsReadTheTableOfARealDisk(t *testing.T) {
	disks := realDisks(t)
	r := startReal(t)
	v := r.create(t, id, r.pools(t, disks)[0])
	said := disks[0].command("blkid", "--probe", "--output", "export", v.Content.Source)
	for _, want := range []string{"PART_ENTRY_SCHEME=gpt", "PART_ENTRY_NAME=pvc-0b0e6f2e8a4e4f579a538b6f3f1f9a10", "PART_ENTRY_TYPE=919eaef5-12ab-4786-b5c4-26615e4068ce"} {
		if !strings.Contains(said, want) {
			t.Errorf("blkid lacks %s in: %s", want, said)
		}
	}
}

func TestAVolumeIsFoundByItsDiskAloneOnARealDisk(t *testing.T) {
	disks := realDisks(t)
	r := startReal(t)
	v := r.create(t, id, r.pools(t, disks)[0])
	if _, err := r.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Ext4}); err != nil {
		t.Fatal(err)
	}
	r.stop()
	holder, err := kernel.Disks{}.Hold(filepath.Base(disks[0].path))
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.RemovePartition(1); err != nil {
		t.Fatal(err)
	}
	holder.Close()
	if (kernel.Disks{}).Leads(v.Content.Source, v.Content.Identity) == nil {
		t.Fatal("the partition is still there")
	}
	r = startReal(t)
	v.Filesystem = provision.Ext4
	if got, err := r.Get(t.Context(), id); err != nil || got != v || (kernel.Disks{}).Leads(v.Content.Source, v.Content.Identity) != nil {
		t.Errorf("found %+v, %v; want %+v", got, err, v)
	}
}

func TestRealDisksThatAreUsedAreClosedAndFreeAgainWhenCleared(t *testing.T) {
	disks := realDisks(t)
	r := startReal(t)
	ref := r.pools(t, disks)[1]
	closed := func(p *provision.Pool) bool { return p != nil && p.Problem != "" && p.Free == 0 }
	for name, use := range map[string]func(){
		"a filesystem":         func() { disks[1].command("mkfs.ext4", "-q", "-F", disks[1].path) },
		"a physical volume":    func() { disks[1].command("lvm", "pvcreate", "--yes", "-ff", disks[1].path) },
		"data without a table": func() { blockdevtest.WriteAt(t, disks[1].path, "x", 1<<20) },
	} {
		use()
		r.await(t, ref, "a disk with "+name+" closed", closed)
		devicetest.Clear(t, disks[1].path)
		r.await(t, ref, "the disk free after "+name, free)
	}
}

func TestADiskThatIsPulledAndPluggedInAgain(t *testing.T) {
	disks := realDisks(t)
	r := startReal(t)
	ref := r.pools(t, disks)[1]
	v := r.create(t, id, ref)
	plug := disks[1].pull()
	r.await(t, ref, "a pulled disk", func(p *provision.Pool) bool {
		return p != nil && p.Problem != "" && len(p.Volumes) == 1 && p.Volumes[0].Problem != ""
	})
	plug()
	r.await(t, ref, "the disk again", func(p *provision.Pool) bool {
		return p != nil && p.Problem == "" && len(p.Volumes) == 1 && p.Volumes[0].Problem == ""
	})
	got, err := r.Get(t.Context(), id)
	if err != nil || got.ID != v.ID || got.Problem != "" {
		t.Errorf("back: %+v, %v", got, err)
	}
	r.delete(t, id)
	r.await(t, ref, "a free disk", free)
}
