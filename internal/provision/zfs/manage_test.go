package zfs_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run/runtest"
)

const diskSize = 1 << 30

var (
	wished = provision.PoolRef{Type: provision.ZFS, Name: "zfs:made"}
	stripe = provision.Layout{Redundancy: provision.Stripe, Width: 1, Ashift: 12}
	mirror = provision.Layout{Redundancy: provision.Mirror, Width: 2, Ashift: 12}
	raidz1 = provision.Layout{Redundancy: provision.RaidZ1, Width: 3, Ashift: 13}
)

// bare is a machine with disks and no zpool yet.
type bare struct {
	*zfstest.Host
	disks *devicetest.Machine
}

func bareMachine(disks ...string) *bare {
	m := &bare{Host: zfstest.NewHost(nil), disks: devicetest.NewMachine()}
	m.Label = m.label
	for _, d := range disks {
		m.plug(d)
	}
	return m
}

// plug puts an empty disk in, whose identity is its name.
func (m *bare) plug(name string) {
	m.disks.Plug(devicetest.Disk(name, "naa."+name, diskSize), devicetest.NewMedium())
}

// label writes to a disk as zpool does. It refuses a disk that bears a signature.
func (m *bare) label(node string) (int64, error) {
	name := filepath.Base(node)
	if m.disks.Medium(name).Used() {
		return 0, errors.New("a signature")
	}
	m.disks.WriteDisk(name, 512, "EFI PART")
	return diskSize, nil
}

// managed has the provisioners that run on a machine between two restarts.
type managed struct {
	*zfs.Provisioner
	disks   *device.Provisioner
	counter *runtest.Counter
	stop    func()
}

func (m *bare) boot(t *testing.T) managed {
	t.Helper()
	disks := devicetest.Lender(t, m.disks)
	counter, c := counted(m.Host)
	c.Disks = disks
	p, stop := start(t, c)
	return managed{p, disks, counter, stop}
}

// mux returns the provisioners of the machine as one node.
func (n managed) mux() *provision.Mux {
	return provision.NewMux(
		provision.Member{Types: []string{provision.ZFS}, Provisioner: n.Provisioner},
		provision.Member{Types: []string{provision.Device}, Provisioner: n.disks},
	)
}

// matching returns the disks that are reported as empty, as many as make whole vdevs, and the
// nodes of the disks that are not empty.
func (n managed) matching(t *testing.T, width int) (free, used []string) {
	t.Helper()
	pools, err := n.disks.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pools {
		if p.Problem == "" && len(p.Volumes) == 0 {
			free = append(free, p.Name)
		} else {
			used = append(used, p.Paths[0])
		}
	}
	return free[:len(free)/width*width], used
}

// ensure wishes for a zpool of all the disks that are free.
func (n managed) ensure(t *testing.T, z provision.Layout) (provision.Outcome, error) {
	t.Helper()
	free, used := n.matching(t, z.Width)
	return n.Ensure(t.Context(), provision.PoolWish{Pool: wished, Layout: z, Disks: free, Search: used})
}

func (n managed) mustEnsure(t *testing.T, z provision.Layout, want provision.Reason) provision.Outcome {
	t.Helper()
	got, err := n.ensure(t, z)
	if err != nil || got.Reason != want {
		t.Fatalf("the zpool is %+v, error %v; want %s", got, err, want)
	}
	return got
}

// zpool returns the vdevs and options of the zpool; the zero value if there is none.
func (m *bare) zpool() (made zfstest.Made) {
	m.Edit(func(zpools map[string]*zfstest.Zpool) {
		if z := zpools["made"]; z != nil {
			made = z.Made
		}
	})
	return made
}

func TestAZpoolIsMadeOfWholeVdevsAndGrowsByThem(t *testing.T) {
	for name, tc := range map[string]struct {
		zpool provision.Layout
		want  zfstest.Made
	}{
		"a stripe": {stripe, zfstest.Made{Comment: "berth.dev:Stripe:1:12", Ashift: "12", Cachefile: "none", Vdevs: [][]string{
			{"/dev/sda"}, {"/dev/sdb"}, {"/dev/sdc"}, {"/dev/sdd"}, {"/dev/sde"}, {"/dev/sdf"}, {"/dev/sdg"},
		}}},
		"mirrors": {mirror, zfstest.Made{Comment: "berth.dev:Mirror:2:12", Ashift: "12", Cachefile: "none", Vdevs: [][]string{
			{"mirror", "/dev/sda", "/dev/sdb"}, {"mirror", "/dev/sdc", "/dev/sdd"}, {"mirror", "/dev/sde", "/dev/sdf"},
		}}},
		"raidz1": {raidz1, zfstest.Made{Comment: "berth.dev:RaidZ1:3:13", Ashift: "13", Cachefile: "none", Vdevs: [][]string{
			{"raidz1", "/dev/sda", "/dev/sdb", "/dev/sdc"}, {"raidz1", "/dev/sdd", "/dev/sde", "/dev/sdf"},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := bareMachine()
			n := m.boot(t)
			n.mustEnsure(t, tc.zpool, provision.PoolAwaitsDisks)
			for _, d := range []string{"sda", "sdb", "sdc", "sdd"} {
				m.plug(d)
			}
			n.mustEnsure(t, tc.zpool, provision.PoolMade)
			n.mustEnsure(t, tc.zpool, provision.PoolAsAsked)
			for _, d := range []string{"sde", "sdf", "sdg"} {
				m.plug(d)
			}
			n.mustEnsure(t, tc.zpool, provision.PoolGrown)
			n.mustEnsure(t, tc.zpool, provision.PoolAsAsked)
			if diff := cmp.Diff(tc.want, m.zpool()); diff != "" {
				t.Errorf("the zpool is made otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWishThatIsMetStartsNoProcess(t *testing.T) {
	m := bareMachine("sda")
	n := m.boot(t)
	n.mustEnsure(t, stripe, provision.PoolMade)
	n.mustEnsure(t, stripe, provision.PoolAsAsked)
	n.counter.Take()
	n.mustEnsure(t, stripe, provision.PoolAsAsked)
	if got := n.counter.Take(); len(got) > 0 {
		t.Errorf("it started %v", got)
	}
}

func TestAZpoolIsMadeOfNamesThatDisksKeep(t *testing.T) {
	m := bareMachine("sda", "sdb")
	m.Aliases = map[string]string{"/dev/sdb": "/dev/disk/by-id/ata-MODEL_2"}
	n := m.boot(t)
	o := n.mustEnsure(t, mirror, provision.PoolMade)
	if want := []string{"mirror", "/dev/sda", "/dev/disk/by-id/ata-MODEL_2"}; !slices.Equal(m.zpool().Vdevs[0], want) || !strings.Contains(o.Message, "ata-MODEL_2") {
		t.Errorf("made of %v, told %q", m.zpool().Vdevs, o.Message)
	}
}

// theirs are machines on which Berth must not give a disk to the zpool: others made one of that
// name, it is in trouble, or the machine is not ready.
var theirs = map[string]struct {
	put    func(m *bare)
	reason provision.Reason
	says   string
}{
	"a foreign zpool is imported":               {func(m *bare) { m.putZpool("") }, provision.PoolForeign, "not made by Berth"},
	"a foreign zpool has a comment like a mark": {func(m *bare) { m.putZpool("berth.dev:Stripe:1:99") }, provision.PoolForeign, "not made by Berth"},
	"the zpool has another layout":              {func(m *bare) { m.putZpool("berth.dev:Mirror:2:12") }, provision.PoolDiffers, "Mirror of 2 disks"},
	"the zpool is degraded": {func(m *bare) {
		m.putZpool("berth.dev:Stripe:1:12")
		m.Edit(func(zpools map[string]*zfstest.Zpool) { zpools["made"].State = "DEGRADED" })
	}, provision.PoolTroubled, "degraded"},
	"a foreign zpool is not imported": {func(m *bare) { m.leave("") }, provision.PoolForeign, "zpool import made"},
	"two zpools have the name": {func(m *bare) {
		m.leave("berth.dev:Stripe:1:12")
		m.leave("berth.dev:Stripe:1:12")
	}, provision.PoolTroubled, "2 zpools named made"},
	"udev does not run":                  {func(m *bare) { m.NoUdev = true }, provision.PoolTroubled, "udev"},
	"ZFS is missing":                     {func(m *bare) { m.Version = "" }, provision.PoolTroubled, "modprobe zfs"},
	"the programs and the module differ": {func(m *bare) { m.Tools = "zfs-2.3.1" }, provision.PoolTroubled, "2.3.1"},
}

// leave plugs a disk in with a zpool that is not imported.
func (m *bare) leave(comment string) {
	m.disks.Plug(devicetest.Disk("sdz", "naa.sdz", diskSize), devicetest.NewMedium())
	m.disks.WriteDisk("sdz", 512, "EFI PART")
	m.Leave("made", comment, "/dev/sdz")
}

// putZpool makes a zpool as others do, with a comment.
func (m *bare) putZpool(comment string) {
	m.Edit(func(zpools map[string]*zfstest.Zpool) {
		zpools["made"] = zfstest.NewHost(map[string]int64{"made": diskSize}).Take("made")
		zpools["made"].Made.Comment = comment
	})
}

func TestADiskIsNotGivenToAZpool(t *testing.T) {
	for name, tc := range theirs {
		t.Run(name, func(t *testing.T) {
			m := bareMachine("sda")
			tc.put(m)
			n := m.boot(t)
			before := m.zpool()
			for range 2 {
				if o := n.mustEnsure(t, stripe, tc.reason); !strings.Contains(o.Message, tc.says) {
					t.Errorf("told %q", o.Message)
				}
			}
			if diff := cmp.Diff(before, m.zpool()); diff != "" || m.disks.Medium("sda").Used() {
				t.Errorf("the disk is written: %v; the zpool is changed:\n%s", m.disks.Medium("sda").Used(), diff)
			}
		})
	}
}

func TestAZpoolIsHandedOverByItsComment(t *testing.T) {
	m := bareMachine("sda")
	m.putZpool("")
	n := m.boot(t)
	n.mustEnsure(t, stripe, provision.PoolForeign)
	m.Edit(func(zpools map[string]*zfstest.Zpool) {
		zpools["made"].Made = zfstest.Made{Comment: "berth.dev:Stripe:1:12", Vdevs: [][]string{{"/dev/sdx"}}}
	})
	n.stop()
	n = m.boot(t)
	n.mustEnsure(t, stripe, provision.PoolGrown)
}

func TestAZpoolComesBackAfterAReboot(t *testing.T) {
	m := bareMachine("sda")
	n := m.boot(t)
	n.mustEnsure(t, stripe, provision.PoolMade)
	if _, err := n.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: wished, Size: 2 * unit}); err != nil {
		t.Fatal(err)
	}
	n.stop()
	m.Reboot()
	m.plug("sdb")
	n = m.boot(t)
	n.mustEnsure(t, stripe, provision.PoolImported)
	if v, err := n.Get(t.Context(), "pvc-1"); err != nil || v.Problem != "" {
		t.Errorf("the volume is %+v, %v", v, err)
	}
	if got := m.zpool(); got.Cachefile != "none" || m.disks.Medium("sdb").Used() {
		t.Errorf("imported as %+v; the other disk is written: %v", got, m.disks.Medium("sdb").Used())
	}
	n.mustEnsure(t, stripe, provision.PoolGrown)
}

func TestAZpoolThatWentWithItsVolumesIsNotMadeAnew(t *testing.T) {
	m := bareMachine("sda")
	n := m.boot(t)
	n.mustEnsure(t, stripe, provision.PoolMade)
	if _, err := n.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: wished, Size: 2 * unit}); err != nil {
		t.Fatal(err)
	}
	m.Edit(func(zpools map[string]*zfstest.Zpool) { delete(zpools, "made") })
	m.plug("sdb")
	if pools, err := n.Report(t.Context()); err != nil || len(pools) != 1 || pools[0].Problem == "" {
		t.Fatalf("reported %+v, %v", pools, err)
	}
	if o := n.mustEnsure(t, stripe, provision.PoolTroubled); !strings.Contains(o.Message, "not made anew") || m.disks.Medium("sdb").Used() {
		t.Errorf("told %q; the disk is written: %v", o.Message, m.disks.Medium("sdb").Used())
	}
}

func TestAVdevThatZFSDoesNotTakeHoldsUpNoOther(t *testing.T) {
	m := bareMachine("sda", "sdb", "sdc")
	m.Label = func(node string) (int64, error) {
		if node == "/dev/sda" {
			return 0, errors.New("the disk is damaged")
		}
		return m.label(node)
	}
	n := m.boot(t)
	o := n.mustEnsure(t, stripe, provision.PoolMade)
	if !strings.Contains(o.Message, "of /dev/sdb, /dev/sdc; others were not taken: /dev/sda") || len(m.zpool().Vdevs) != 2 {
		t.Errorf("told %q, made %+v", o.Message, m.zpool())
	}
	if _, err := n.ensure(t, stripe); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v", err)
	}
}

func TestAVdevLacksADiskThatIsNoLongerEmpty(t *testing.T) {
	m := bareMachine("sda", "sdb")
	n := m.boot(t)
	free, _ := n.matching(t, 2)
	wish := provision.PoolWish{Pool: wished, Layout: mirror, Disks: free}
	m.disks.Medium("sdb").Put([]byte("XFSB"), 0) // and no event tells
	got, err := n.Ensure(t.Context(), wish)
	if err != nil || got.Reason != provision.DisksRefused || !strings.Contains(got.Message, "xfs") || m.disks.Medium("sda").Used() {
		t.Errorf("got %+v, %v; the other disk is written: %v", got, err, m.disks.Medium("sda").Used())
	}
}

func TestAZpoolIsSearchedForOnTheDisksThatMatchAndNoOthers(t *testing.T) {
	m := bareMachine("sda")
	m.Leave("made", "berth.dev:Stripe:1:12", "/dev/sdz") // which matches no class
	n := m.boot(t)
	n.mustEnsure(t, stripe, provision.PoolMade)
	if got := n.counter.Take(); got["zpool import"] != 0 {
		t.Errorf("with no disk to search it started %v", got)
	}
}

func TestAZpoolThatIsExportedMeanwhileIsLeftAlone(t *testing.T) {
	m := bareMachine("sda")
	n := m.boot(t)
	n.mustEnsure(t, stripe, provision.PoolMade)
	m.Reboot() // which leaves it as an export does
	m.plug("sdb")
	if o := n.mustEnsure(t, stripe, provision.PoolTroubled); !strings.Contains(o.Message, "was exported") || m.disks.Medium("sdb").Used() {
		t.Errorf("told %q; the other disk is written: %v", o.Message, m.disks.Medium("sdb").Used())
	}
	n.stop()
	n = m.boot(t)
	n.mustEnsure(t, stripe, provision.PoolImported)
}
