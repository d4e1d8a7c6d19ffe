package lvm_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

const diskUnits = 129 // of a disk: LVM needs one for itself

// bare is a machine with disks and no volume group yet.
type bare struct {
	*lvmtest.Host
	disks *devicetest.Machine
}

func bareMachine(disks ...string) *bare {
	m := &bare{Host: lvmtest.NewHost(nil), disks: devicetest.NewMachine()}
	m.Label = m.label
	for _, d := range disks {
		m.plug(d)
	}
	return m
}

// plug puts an empty disk in, whose identity is its name.
func (m *bare) plug(name string) {
	m.disks.Plug(devicetest.Disk(name, "naa."+name, diskUnits*unit), devicetest.NewMedium())
}

// label writes LVM's label to a disk. It refuses a disk that bears a signature of another program.
func (m *bare) label(node string) (int64, error) {
	name := filepath.Base(node)
	own := make([]byte, 8)
	if m.disks.Medium(name).Get(own, 512); m.disks.Medium(name).Used() && string(own) != "LABELONE" {
		return 0, errors.New("a signature")
	}
	m.disks.WriteDisk(name, 512, "LABELONE")
	return diskUnits * unit, nil
}

// managed holds the provisioners that run on a machine between two restarts.
type managed struct {
	*lvm.Provisioner
	disks *device.Provisioner
	stop  func()
}

// boot starts the provisioners of a machine; the runner may be another than the host.
func (m *bare) boot(t *testing.T, r run.Runner) managed {
	t.Helper()
	disks := devicetest.Lender(t, m.disks)
	c := config(m.Host, (&conformance.Formats{}).Make)
	c.Runner, c.Disks = r, disks
	p, stop := start(t, c)
	return managed{p, disks, stop}
}

// free returns the names of the disks that are reported as empty.
func (n managed) free(t *testing.T) (names []string) {
	t.Helper()
	pools, err := n.disks.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pools {
		if p.Problem == "" && len(p.Volumes) == 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

// ensure asks for the group with all the disks that are free, and for its thin pool
// unless percent is 0.
func (n managed) ensure(t *testing.T, percent int) (group, pool provision.Outcome, err error) {
	t.Helper()
	group, err = n.Ensure(t.Context(), provision.PoolWish{Pool: vg, Disks: n.free(t)})
	if err != nil || percent == 0 {
		return group, pool, err
	}
	pool, err = n.Ensure(t.Context(), provision.PoolWish{Pool: thin, SizePercent: percent, Extension: provision.Extension{At: 80, By: 20}})
	return group, pool, err
}

func mustEnsure(t *testing.T, n managed, percent int, group, pool provision.Reason) {
	t.Helper()
	g, p, err := n.ensure(t, percent)
	if err != nil || g.Reason != group || p.Reason != pool {
		t.Fatalf("the group is %+v, the pool %+v, error %v; want %s and %s", g, p, err, group, pool)
	}
}

// devices returns the disks of the group, nil if there is none.
func (m *bare) devices() (devices []string) {
	m.Edit(func(groups map[string]*lvmtest.Group) string {
		if g := groups[vg.Name]; g != nil {
			devices = append([]string{g.Device}, g.More...)
		}
		return ""
	})
	return devices
}

func TestAGroupIsMadeOfEmptyDisksAndGrowsByThoseThatCome(t *testing.T) {
	m := bareMachine()
	n := m.boot(t, m)
	mustEnsure(t, n, 0, provision.PoolAwaitsDisks, "")
	m.plug("sda")
	m.plug("sdb")
	m.disks.WriteDisk("sdb", 1080, "\x53\xef")
	m.plug("sdc")
	mustEnsure(t, n, 0, provision.PoolMade, "")
	mustEnsure(t, n, 0, provision.PoolAsAsked, "")
	if got := m.devices(); !slices.Equal(got, []string{"/dev/sda", "/dev/sdc"}) {
		t.Errorf("the group is made of %v", got)
	}
	if p := poolOf(t, n.Provisioner, vg); p.Total != 2*(diskUnits-1)*unit || p.Free != p.Total || p.Problem != "" {
		t.Errorf("reported %+v", p)
	}
	m.plug("sdd")
	mustEnsure(t, n, 0, provision.PoolGrown, "")
	mustEnsure(t, n, 0, provision.PoolAsAsked, "")
	if p := poolOf(t, n.Provisioner, vg); p.Total != 3*(diskUnits-1)*unit {
		t.Errorf("reported %+v", p)
	}
}

func TestAThinPoolIsMadeKeepsItsShareAndIsExtendedBeforeItIsFull(t *testing.T) {
	m := bareMachine("sda")
	n := m.boot(t, m)
	mustEnsure(t, n, 50, provision.PoolMade, provision.PoolMade)
	mustEnsure(t, n, 50, provision.PoolAsAsked, provision.PoolAsAsked)
	if p := poolOf(t, n.Provisioner, thin); p.Total != 64*unit || p.Free != p.Total || p.Problem != "" {
		t.Errorf("reported %+v", p)
	}
	m.plug("sdb")
	mustEnsure(t, n, 50, provision.PoolGrown, provision.PoolGrown)
	if p := poolOf(t, n.Provisioner, thin); p.Total != 128*unit {
		t.Errorf("reported %+v", p)
	}
	m.PutForeignThin(vg.Name, "pool", "theirs", "", 1000*unit)
	m.On("/dev/vg-a/theirs", func(v *lvmtest.Volume) { v.Data = 105 * unit })
	mustReport(t, n)
	mustEnsure(t, n, 50, provision.PoolAsAsked, provision.PoolExtended)
	if p := poolOf(t, n.Provisioner, thin); p.Total != 153*unit || p.Fill.Data != 105*unit {
		t.Errorf("reported %+v", p)
	}
	m.On("/dev/vg-a/theirs", func(v *lvmtest.Volume) { v.Data = 1000 * unit }) // faster than the provisioner looks
	m.On("/dev/vg-a/pool", func(v *lvmtest.Volume) { v.Thin.Filled = 85 })
	mustReport(t, n)
	for _, want := range []provision.Reason{provision.PoolExtended, provision.PoolExtended, provision.PoolExtended, provision.PoolNoRoom} {
		mustEnsure(t, n, 50, provision.PoolAsAsked, want)
	}
	if p := poolOf(t, n.Provisioner, vg); p.Free >= 4*unit || p.Free < 0 {
		t.Errorf("of the group is left %d", p.Free/unit)
	}
}

// mustReport has the provisioner read the kernel's status of the thin pools.
func mustReport(t *testing.T, n managed) {
	t.Helper()
	if _, err := n.Create(t.Context(), provision.CreateRequest{ID: "pvc-look", Pool: thin, Size: 1 << 50}); !errors.Is(err, provision.ErrNoSpace) {
		t.Fatal(err)
	}
}

func TestAWishThatIsMetStartsNoProcess(t *testing.T) {
	m := bareMachine("sda")
	counter := runtest.Count(m)
	n := m.boot(t, counter)
	mustEnsure(t, n, 50, provision.PoolMade, provision.PoolMade)
	poolOf(t, n.Provisioner, vg)
	counter.Take()
	for range 3 {
		mustEnsure(t, n, 50, provision.PoolAsAsked, provision.PoolAsAsked)
	}
	if got := counter.Take(); len(got) > 0 {
		t.Errorf("started %v", got)
	}
}

func TestGroupsAndPoolsOfOthersAreNotChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		theirs      func(*bare)
		group, pool provision.Reason
	}{
		"a foreign group": {func(m *bare) { m.AddGroup(vg.Name, 100) }, provision.PoolForeign, provision.PoolForeign},
		"a renamed group of Berth": {func(m *bare) {
			m.AddGroup(vg.Name, 100)
			m.Edit(func(g map[string]*lvmtest.Group) string {
				g[vg.Name].Tags = []string{"berth.dev/managed=vg-b", "fast"}
				return ""
			})
		}, provision.PoolForeign, provision.PoolForeign},
		"a thin pool in a foreign group": {func(m *bare) {
			m.AddGroup(vg.Name, 100)
			m.AddThinPool(vg.Name, "pool", 10)
		}, provision.PoolForeign, provision.PoolAsAsked},
		"a group that lacks a disk": {func(m *bare) {
			m.AddGroup(vg.Name, 100)
			m.Edit(func(g map[string]*lvmtest.Group) string {
				g[vg.Name].Tags, g[vg.Name].Missing = []string{"berth.dev/managed=vg-a"}, 1
				return ""
			})
		}, provision.PoolTroubled, provision.PoolTroubled},
		"a foreign logical volume in a group of Berth": {func(m *bare) {
			m.AddGroup(vg.Name, 100)
			m.PutForeign(vg.Name, "pool", unit)
			m.Edit(func(g map[string]*lvmtest.Group) string {
				g[vg.Name].Tags = []string{"berth.dev/managed=vg-a"}
				return ""
			})
		}, provision.PoolGrown, provision.PoolForeign},
	} {
		t.Run(name, func(t *testing.T) {
			m := bareMachine("sda")
			tc.theirs(m)
			n := m.boot(t, m)
			mustEnsure(t, n, 50, tc.group, tc.pool)
			if used := m.disks.Medium("sda").Used(); used != (tc.group == provision.PoolGrown) {
				t.Errorf("the disk is written: %v", used)
			}
		})
	}
}

func TestAThinPoolOfOthersIsExtendedWhereThatIsAsked(t *testing.T) {
	m := bareMachine()
	m.AddGroup(vg.Name, 100)
	m.AddThinPool(vg.Name, "pool", 10)
	m.PutForeignThin(vg.Name, "pool", "theirs", "", 20*unit)
	m.On("/dev/vg-a/theirs", func(v *lvmtest.Volume) { v.Data = 10 * unit })
	n := m.boot(t, m)
	mustReport(t, n)
	mustEnsure(t, n, 50, provision.PoolForeign, provision.PoolExtended)
	mustEnsure(t, n, 50, provision.PoolForeign, provision.PoolAsAsked)
	if p := poolOf(t, n.Provisioner, thin); p.Total != 14*unit || p.Problem != "" {
		t.Errorf("reported %+v", p)
	}
}

func TestADiskThatAnEndingProcessLeftLabelledIsNotTakenAndTheOthersAre(t *testing.T) {
	m := bareMachine("sda", "sdb")
	ended := false
	m.Label = func(node string) (int64, error) {
		if ended = ended || node == "/dev/sdb"; ended {
			return 0, errCrash
		}
		return m.label(node)
	}
	n := m.boot(t, m)
	if _, _, err := n.ensure(t, 0); err == nil {
		t.Fatal("no error")
	}
	n.stop()
	m.Label = m.label
	n = m.boot(t, m)
	mustEnsure(t, n, 0, provision.PoolMade, "")
	if got := m.devices(); !slices.Equal(got, []string{"/dev/sdb"}) {
		t.Errorf("the group is made of %v", got)
	}
	mustEnsure(t, n, 0, provision.PoolAsAsked, "")
}

func TestADiskThatLVMDoesNotTakeHoldsUpNoOther(t *testing.T) {
	m := bareMachine("sda", "sdb", "sdc")
	m.Label = func(node string) (int64, error) {
		if node == "/dev/sdb" {
			return 0, errors.New("devices have inconsistent logical block sizes")
		}
		return m.label(node)
	}
	n := m.boot(t, m)
	got, _, err := n.ensure(t, 0)
	if err != nil || got.Reason != provision.PoolMade || !strings.Contains(got.Message, "of /dev/sda, /dev/sdc; others were not taken: /dev/sdb") {
		t.Errorf("got %+v, %v", got, err)
	}
	if got := m.devices(); !slices.Equal(got, []string{"/dev/sda", "/dev/sdc"}) {
		t.Errorf("the group is made of %v", got)
	}
	if _, _, err := n.ensure(t, 0); err == nil || !strings.Contains(err.Error(), "block sizes") {
		t.Errorf("got %v", err)
	}
	m.plug("sdd")
	mustEnsure(t, n, 0, provision.PoolGrown, "")
}

func TestADiskThatIsNoLongerEmptyIsNamed(t *testing.T) {
	m := bareMachine("sda")
	n := m.boot(t, m)
	wish := provision.PoolWish{Pool: vg, Disks: n.free(t)}
	m.disks.Medium("sda").Put([]byte("XFSB"), 0) // without a signal
	got, err := n.Ensure(t.Context(), wish)
	if err != nil || got.Reason != provision.DisksRefused || !strings.Contains(got.Message, "xfs") || m.devices() != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNoGroupIsMadeWhileAnotherDoesNotAnswer(t *testing.T) {
	m := bareMachine("sda")
	m.AddGroup("vg-hangs", 10)
	m.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		if c.Operation == "fullreport" {
			return nil, errors.New("it hangs")
		}
		return do()
	}
	n := m.boot(t, m)
	_, _, err := n.ensure(t, 0)
	if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "vg-hangs") || m.devices() != nil {
		t.Errorf("got %v", err)
	}
}
