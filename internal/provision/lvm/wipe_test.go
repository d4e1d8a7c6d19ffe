package lvm_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

const secret = "what nobody else may read"

// remnants returns the deleted volumes of the group that are still to be wiped, by the report.
func remnants(t *testing.T, p provision.Provisioner) []provision.Volume {
	t.Helper()
	return poolOf(t, p, vg).Wiping
}

// settle waits until nothing is left to be wiped.
func settle(t *testing.T, p provision.Provisioner) {
	t.Helper()
	eventually(t, func() bool { return len(remnants(t, p)) == 0 }, "what a deleted volume left is still there")
}

// failing awaits a remnant with this problem.
func failing(t *testing.T, p provision.Provisioner, problem string) {
	t.Helper()
	eventually(t, func() bool {
		left := remnants(t, p)
		return len(left) == 1 && strings.Contains(left[0].Problem, problem)
	}, "nothing that is left says "+problem)
}

// wiping returns a host with an empty group, and the configuration of a provisioner.
func wiping() (*lvmtest.Host, lvm.Config) {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
	_, c := counted(host)
	return host, c
}

// holdsSecret makes a volume that holds a secret on each of its units.
func holdsSecret(t *testing.T, host *lvmtest.Host, p provision.Provisioner, r provision.CreateRequest) provision.Volume {
	t.Helper()
	v := create(t, p, r)
	for at := int64(0); at < v.Size; at += unit {
		host.WriteAt(v.Content.Source, secret, at+4096)
	}
	return v
}

// shows says whether a volume holds something on one of its units.
func shows(host *lvmtest.Host, v provision.Volume) bool {
	for at := int64(0); at < v.Size; at += unit {
		if strings.Trim(host.ReadAt(v.Content.Source, len(secret), at+4096), "\x00") != "" {
			return true
		}
	}
	return false
}

func remove(t *testing.T, p provision.Provisioner, id string) {
	t.Helper()
	if err := p.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func TestADeletedVolumeTakesRoomUntilItIsWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		begun, release := make(chan struct{}), make(chan struct{})
		host.Wiping = func(_ string, _, _ int64, do func() error) error {
			close(begun)
			<-release
			return do()
		}
		p, _ := start(t, c)
		holdsSecret(t, host, p, request("pvc-1", 2))
		remove(t, p, "pvc-1")
		<-begun
		if _, err := p.Get(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("getting it: %v", err)
		}
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Errorf("deleting it again: %v", err)
		}
		if _, err := p.Create(t.Context(), request("pvc-1", 2)); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "being wiped") {
			t.Errorf("making it again: %v", err)
		}
		if _, err := p.Create(t.Context(), request("pvc-2", 99)); !errors.Is(err, provision.ErrNoSpace) {
			t.Errorf("on its space: %v", err)
		}
		pool := poolOf(t, p, vg)
		if len(pool.Wiping) != 1 || pool.Wiping[0].ID != "pvc-1" || pool.Wiping[0].Size != 2*unit || pool.Wiping[0].Problem != "" ||
			len(pool.Volumes) != 0 || pool.Free != 98*unit || pool.Foreign != 0 || pool.Problem != "" {
			t.Errorf("reported %+v", pool)
		}
		other := create(t, p, request("pvc-3", 1)) // which does not wait for the wiping
		remove(t, p, other.ID)
		quiet(p)
		host.Disturb(func(h *lvmtest.Host) { h.Wiping = nil })
		close(release)
		awaitChange(t, p) // the free room is signalled
		settle(t, p)
		if pool := poolOf(t, p, vg); pool.Free != 100*unit {
			t.Errorf("reported %+v", pool)
		}
		if v := create(t, p, request("pvc-1", 100)); shows(host, v) {
			t.Error("the next volume shows it")
		}
	})
}

// quiet takes the signals that are pending.
func quiet(p provision.Provisioner) {
	for {
		select {
		case <-p.Changed():
		default:
			return
		}
	}
}

func TestAVolumeThatCannotBeWipedIsKeptAndTriedAgain(t *testing.T) {
	broken := func(string, int64, int64, func() error) error { return errors.New("a broken sector") }
	lies := func(string, int64, int64, func() error) error { return nil }
	removal := only("lvremove", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, exit5(c) })
	calm := func(h *lvmtest.Host) { h.Disturb(func(h *lvmtest.Host) { h.Around, h.Wiping = nil, nil }) }
	open := func(h *lvmtest.Host, open bool) {
		h.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) { v.Open = open })
	}
	for name, tc := range map[string]struct {
		before, after func(h *lvmtest.Host) // before the deletion; after ends the trouble
		problem       string
	}{
		"a disk that cannot be written": {func(h *lvmtest.Host) { h.Wiping = broken }, calm, "a broken sector"},
		"a disk that lies":              {func(h *lvmtest.Host) { h.Wiping = lies }, calm, "it was not"},
		"a removal that fails":          {func(h *lvmtest.Host) { h.Around = removal }, calm, "something strange"},
		"a process opens the volume just then": {func(h *lvmtest.Host) {
			h.Around = only("lvchange", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
				defer open(h, true)
				return do()
			})
		}, func(h *lvmtest.Host) { open(h, false) }, "it is open"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host, c := wiping()
			p, _ := start(t, c)
			holdsSecret(t, host, p, request("pvc-1", 2))
			host.Disturb(tc.before)
			remove(t, p, "pvc-1")
			failing(t, p, tc.problem)
			if pool := poolOf(t, p, vg); pool.Free != 98*unit || pool.Problem != "" {
				t.Errorf("reported %+v", pool)
			}
			tc.after(host)
			settle(t, p)
			if v := create(t, p, request("pvc-2", 100)); shows(host, v) {
				t.Error("the next volume shows it")
			}
		}))
	}
}

// Udev looks at a device whenever a writer has closed it.
func TestADeviceThatIsOpenForAMomentIsNotInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		looks := &looked{Host: host, left: 4} // two by each of the deletion and the wiping
		c.Devices = looks
		p, _ := start(t, c)
		create(t, p, request("pvc-1", 1))
		remove(t, p, "pvc-1")
		settle(t, p)
		if looks.left > 0 {
			t.Errorf("nobody looked whether it was open %d times more", looks.left)
		}
	})
}

// looked is a host that reports every second time that one more process has a device open.
type looked struct {
	*lvmtest.Host
	mu   sync.Mutex
	left int
}

func (l *looked) Opens(name string) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	opened, err := l.Host.Opens(name)
	if l.left--; l.left%2 != 0 {
		opened++
	}
	return opened, err
}

func TestThePolicyThatWasRecordedHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		tags  []string
		wiped bool
	}{
		"zeros":                              {[]string{"berth.dev/wipe=Zero"}, true},
		"left unwiped":                       {[]string{"berth.dev/wipe=Discard"}, true},
		"left":                               {[]string{"berth.dev/wipe=None"}, false},
		"made by a version without a policy": {nil, true},
		"an unknown policy":                  {[]string{"berth.dev/wipe=Shred"}, true},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			host, c := wiping()
			host.Edit(func(groups map[string]*lvmtest.Group) string {
				g := groups[vg.Name]
				g.Volumes["pvc-1"] = &lvmtest.Volume{Extents: 2, Active: true, Tags: append(tc.tags, "berth.dev/volume=pvc-1")}
				return g.Device
			})
			host.WriteAt("/dev/vg-a/pvc-1", secret, unit+4096)
			p, _ := start(t, c)
			remove(t, p, "pvc-1")
			settle(t, p)
			if v := create(t, p, request("pvc-2", 100)); shows(host, v) == tc.wiped {
				t.Errorf("the next volume shows it: %v", !tc.wiped)
			}
		}))
	}
}

func TestTheRemnantsThatARestartFindsAreWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		marked := func(id string, layout string) *lvmtest.Volume {
			return &lvmtest.Volume{Extents: 2, Layout: layout, Tags: []string{"berth.dev/wiping=" + id}} // inactive
		}
		host.Edit(func(groups map[string]*lvmtest.Group) string {
			g := groups[vg.Name]
			for n := range 3 {
				id := fmt.Sprint("pvc-", n)
				g.Volumes[id] = marked(id, "linear")
			}
			g.Volumes["pvc-raid"] = marked("pvc-raid", "raid,raid1")
			g.Volumes["pvc-moved"] = marked("pvc-1", "linear") // not Berth's by its name
			g.Volumes["pvc-cached"] = marked("pvc-cached", "cache")
			g.Volumes["pvc-stopped"] = marked("pvc-stopped", "linear")
			g.Volumes["pvc-stopped"].Active, g.Volumes["pvc-stopped"].Suspended = true, true
			g.Volumes["pvc-seen"] = marked("pvc-seen", "linear")
			g.Volumes["cow"] = &lvmtest.Volume{Extents: 1, Origin: "pvc-seen"}
			return g.Device
		})
		p, _ := start(t, c)
		eventually(t, func() bool {
			left := remnants(t, p)
			return len(left) == 2 && strings.Contains(left[0].Problem, "lvconvert") && strings.Contains(left[1].Problem, "vg-a/cow")
		}, "what can be wiped is not, or what cannot is not reported")
		if pool := poolOf(t, p, vg); pool.Foreign != 3*unit || pool.Free != 93*unit {
			t.Errorf("reported %+v", pool)
		}
	})
}

// An administrator may turn a logical volume that is to be wiped into a volume again.
func TestARemnantMadeAVolumeAgainUnnoticedIsNotWiped(t *testing.T) {
	for name, silent := range map[string]bool{"LVM answers": false, "LVM does not answer for a while": true} {
		t.Run(name, inBubble(func(t *testing.T) { madeAgainUnnoticed(t, silent) }))
	}
}

func madeAgainUnnoticed(t *testing.T, silent bool) {
	host, c := wiping()
	p, _ := start(t, c)
	create(t, p, request("pvc-1", 2))
	host.Disturb(func(h *lvmtest.Host) {
		h.Around = only("lvchange", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
			defer host.On("/dev/vg-a/pvc-1", func(v *lvmtest.Volume) { v.Open = true })
			return do()
		})
	})
	remove(t, p, "pvc-1")
	failing(t, p, "it is open")
	host.WriteAt("/dev/vg-a/pvc-1", "its user's", unit+4096)
	var asked atomic.Int32
	if silent {
		host.Disturb(func(h *lvmtest.Host) {
			h.Around = only("fullreport", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { asked.Add(1); return nil, exit5(c) })
		})
	}
	host.Edit(func(groups map[string]*lvmtest.Group) (unnoticed string) {
		v := groups[vg.Name].Volumes["pvc-1"]
		v.Tags, v.Open = []string{"berth.dev/volume=pvc-1"}, false
		groups[vg.Name].Seqno++
		return ""
	})
	intact := func() {
		t.Helper()
		if got := host.ReadAt("/dev/vg-a/pvc-1", 10, unit+4096); got != "its user's" {
			t.Errorf("it holds %q", got)
		}
	}
	if silent {
		eventually(t, func() bool { return asked.Load() > 0 }, "LVM is not asked")
		<-time.After(time.Hour)
		intact()
		host.Disturb(func(h *lvmtest.Host) { h.Around = nil })
	}
	eventually(t, func() bool { return len(remnants(t, p)) == 0 }, "it is still to be wiped")
	if _, err := p.Get(t.Context(), "pvc-1"); err != nil {
		t.Fatalf("the volume is lost: %v", err)
	}
	intact()
}

func TestADeviceNodeOfAnotherVolumeIsNeverWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		host.PutForeign("vg-a", "root", unit)
		host.Wiping = func(path string, _, _ int64, do func() error) error {
			if path != "/dev/vg-a/pvc-1" {
				t.Errorf("%s is wiped", path)
			}
			return do()
		}
		host.Around = only("vgmknodes", func(c run.Command, _ func() ([]byte, error)) ([]byte, error) { return nil, exit5(c) })
		p, _ := start(t, c)
		v := create(t, p, request("pvc-1", 8))
		host.Mislead(v.Content.Source, "/dev/vg-a/root")
		remove(t, p, "pvc-1")
		failing(t, p, "is another device: dm:vg--a-root ")
	})
}

func TestADeletedVolumeIsWipedThoughTheMachineDeactivatedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := wiping()
		p, _ := start(t, c)
		v := create(t, p, request("pvc-1", 8))
		host.WriteAt(v.Content.Source, "a tenant's", 0)
		host.Deactivate(v.Content.Source)
		remove(t, p, "pvc-1")
		settle(t, p)
	})
}
