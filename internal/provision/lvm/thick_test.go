package lvm_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// site is a machine with a thick volume of two units. Copies of it are filled only after let is
// called.
type site struct {
	*testing.T
	host *lvmtest.Host
	p    *lvm.Provisioner
	may  chan struct{}
	// let allows the filling of copies, and stop ends the process.
	let, stop func()
}

func thick(t *testing.T, units int64, change ...func(*provision.CreateRequest)) *site {
	host := lvmtest.NewHost(map[string]int64{vg.Name: units})
	s := &site{T: t, host: host, may: make(chan struct{}), stop: func() {}}
	s.let = sync.OnceFunc(func() { close(s.may) })
	s.restart()
	r := request("pvc-1", 2)
	for _, f := range change {
		f(&r)
	}
	holdsSecret(t, host, s.p, r)
	t.Cleanup(s.let) // before the test waits for the provisioner
	return s
}

// restart ends the provisioner and starts a new one over the machine as it is.
func (s *site) restart() {
	s.stop()
	dead := make(chan struct{})
	s.host.Disturb(func(h *lvmtest.Host) {
		h.Copying = func(_ string, _, _ int64, do func() error) error {
			select {
			case <-s.may:
				return do()
			case <-dead:
				return errCrash
			}
		}
	})
	_, c := counted(s.host)
	c.CopyStep = unit
	p, stop := start(s.T, c)
	s.p, s.stop = p, sync.OnceFunc(func() { close(dead); stop() })
}

func (s *site) snapshot(id, volume string) (provision.Snapshot, error) {
	return s.p.Snapshot(s.Context(), provision.SnapshotRequest{ID: id, Volume: volume})
}

func (s *site) copy(id string, units int64, source provision.Source) (provision.Volume, error) {
	r := request(id, units)
	r.Source = source
	return s.p.Create(s.Context(), r)
}

// took takes a snapshot that is not whole yet.
func (s *site) took() provision.Snapshot {
	s.Helper()
	got, err := s.snapshot("snap-1", "pvc-1")
	if err != nil || !got.Copying || got.Problem != "" || got.Taken.IsZero() {
		s.Fatalf("took %+v, %v", got, err)
	}
	return got
}

// await waits until ok accepts the snapshot.
func (s *site) await(want string, ok func(provision.Snapshot) bool) (got provision.Snapshot) {
	s.Helper()
	eventually(s.T, func() bool {
		var err error
		got, err = s.p.GetSnapshot(s.Context(), "snap-1")
		return err == nil && ok(got)
	}, "the snapshot is not "+want)
	return got
}

func (s *site) awaitWhole() provision.Snapshot {
	s.Helper()
	s.let()
	return s.await("whole", func(got provision.Snapshot) bool { return !got.Copying })
}

func (s *site) pool() provision.Pool {
	s.Helper()
	return poolOf(s.T, s.p, vg)
}

func (s *site) wantErrors(class error, errs map[string]error) {
	s.Helper()
	for name, err := range errs {
		if !errors.Is(err, class) {
			s.Errorf("%s: %v, want %v", name, err, class)
		}
	}
}

func TestASnapshotOfAThickVolumeHoldsTheDataOfItsMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		taken := s.took()
		s.host.WriteAt("/dev/vg-a/pvc-1", strings.Repeat("x", len(secret)), 4096)
		if got := s.awaitWhole(); !got.Taken.Equal(taken.Taken) || got.Size != 2*unit || got.Pool != vg {
			t.Errorf("took %+v, and then it is %+v", taken, got)
		}
		if got := s.host.ReadAt("/dev/vg-a/snap-1", len(secret), 4096); got != secret {
			t.Errorf("it holds %q", got)
		}
		s.host.On("/dev/vg-a/snap-1", func(v *lvmtest.Volume) {
			if !v.ReadOnly {
				t.Error("it can be written")
			}
		})
	})
}

// lacking is a machine on which a device has fewer bytes than LVM says.
type lacking struct{ *lvmtest.Host }

func (l lacking) Look(path string, is provision.Identity) (lvm.Looker, error) {
	from, err := l.Host.Look(path, is)
	return fewer{from}, err
}

type fewer struct{ lvm.Looker }

func (f fewer) Size() (int64, error) {
	size, err := f.Looker.Size()
	return size - unit, err
}

// A snapshot that is called whole is what a user restores from.
func TestASnapshotOfWhichNotAllBytesCanBeCopiedIsNeverWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		c.Devices = lacking{host}
		p, _ := start(t, c)
		holdsSecret(t, host, p, request("pvc-1", 2))
		if _, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		if got, err := p.GetSnapshot(t.Context(), "snap-1"); err != nil || !got.Copying {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestACopyTakesItsRoomAndAsMuchAgainWhileItIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.took()
		// Two units for the data that is overwritten meanwhile, and one for the records of it.
		if p := s.pool(); p.Free != 93*unit || p.Foreign != 3*unit || len(p.Snapshots) != 1 {
			t.Errorf("while it is made: %+v", p)
		}
		s.awaitWhole()
		eventually(t, func() bool { return s.pool().Free == 96*unit }, "what helped takes room for ever")
		if p := s.pool(); p.Foreign != 0 || len(p.Wiping) != 0 {
			t.Errorf("in the end: %+v", p)
		}
	})
}

func TestACopyForWhichThereIsNoRoomLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 6) // one unit too few
		_, snapshot := s.snapshot("snap-1", "pvc-1")
		_, clone := s.copy("pvc-2", 2, provision.Source{Volume: "pvc-1"})
		s.wantErrors(provision.ErrNoSpace, map[string]error{"a snapshot": snapshot, "a clone": clone})
		if p := s.pool(); p.Free != 4*unit || len(p.Snapshots)+len(p.Wiping) != 0 || len(p.Volumes) != 1 {
			t.Errorf("left is %+v", p)
		}
	})
}

func TestARestoreNeedsNoMoreThanItsOwnRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 7)
		s.took()
		s.awaitWhole()
		eventually(t, func() bool { return s.pool().Free == 3*unit }, "the room does not come back")
		if _, err := s.copy("pvc-2", 3, provision.Source{Snapshot: "snap-1"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { v, err := s.p.Get(t.Context(), "pvc-2"); return err == nil && !v.Copying }, "the copy is not made")
		if got := s.host.ReadAt("/dev/vg-a/pvc-2", len(secret), unit+4096); got != secret {
			t.Errorf("it holds %q", got)
		}
	})
}

func TestNothingIsMadeOfACopyThatIsNotWholeAndItsSourceIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.took()
		if _, err := s.copy("pvc-2", 2, provision.Source{Volume: "pvc-1"}); err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		_, restore := s.copy("pvc-3", 2, provision.Source{Snapshot: "snap-1"})
		_, clone := s.copy("pvc-3", 2, provision.Source{Volume: "pvc-2"})
		_, snapshot := s.snapshot("snap-2", "pvc-2")
		_, format := s.p.Format(ctx, provision.FormatRequest{ID: "pvc-2", Filesystem: provision.Ext4})
		_, expand := s.p.Expand(ctx, provision.ExpandRequest{ID: "pvc-2", Size: 3 * unit})
		_, source := s.p.Expand(ctx, provision.ExpandRequest{ID: "pvc-1", Size: 3 * unit})
		s.wantErrors(provision.ErrUnavailable, map[string]error{
			"restoring": restore, "cloning": clone, "taking a snapshot": snapshot, "formatting": format, "expanding": expand, "expanding its source": source,
		})
		s.wantErrors(provision.ErrInUse, map[string]error{"deleting the source": s.p.Delete(ctx, "pvc-1")})
		s.awaitWhole()
		eventually(t, func() bool { return s.p.Delete(ctx, "pvc-1") == nil }, "the source cannot be deleted afterwards")
	})
}

func TestASnapshotIsKeptWhileAVolumeIsMadeFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.took()
		s.awaitWhole()
		begun, may := make(chan struct{}), make(chan struct{})
		s.host.Disturb(func(h *lvmtest.Host) {
			h.Copying = func(_ string, offset, _ int64, do func() error) error {
				if offset == 0 {
					close(begun)
					<-may
				}
				return do()
			}
		})
		if _, err := s.copy("pvc-2", 2, provision.Source{Snapshot: "snap-1"}); err != nil {
			t.Fatal(err)
		}
		<-begun
		s.wantErrors(provision.ErrInUse, map[string]error{"deleting it": s.p.DeleteSnapshot(t.Context(), "snap-1")})
		close(may)
		eventually(t, func() bool { return s.p.DeleteSnapshot(t.Context(), "snap-1") == nil }, "it cannot be deleted afterwards")
	})
}

func TestACopyThatIsDeletedIsCopiedNoFurther(t *testing.T) {
	for name, tc := range map[string]struct {
		id         string
		begin, end func(*site) error
	}{
		"a snapshot": {
			"snap-1", func(s *site) error { _, err := s.snapshot("snap-1", "pvc-1"); return err },
			func(s *site) error { return s.p.DeleteSnapshot(s.Context(), "snap-1") },
		},
		"a clone": {
			"pvc-2", func(s *site) error { _, err := s.copy("pvc-2", 2, provision.Source{Volume: "pvc-1"}); return err },
			func(s *site) error { return s.p.Delete(s.Context(), "pvc-2") },
		},
	} {
		for how, policy := range map[string]provision.Wipe{"and wiped": "", "and left": provision.WipeNone} {
			t.Run(name+" "+how, inBubble(func(t *testing.T) {
				s := thick(t, 100, func(r *provision.CreateRequest) { r.Wipe = policy })
				begun := make(chan struct{}, 1)
				s.host.Disturb(func(h *lvmtest.Host) {
					h.Copying = func(_ string, offset, _ int64, do func() error) error {
						if offset > 0 {
							t.Error("it is copied on")
						}
						begun <- struct{}{}
						<-s.may
						return do()
					}
				})
				if err := tc.begin(s); err != nil {
					t.Fatal(err)
				}
				<-begun
				ended := make(chan error, 1)
				go func() { ended <- tc.end(s) }()
				eventually(t, func() bool { return s.p.Halted() > 0 }, "nobody stops it")
				if err := s.p.GoOn(t.Context(), vg.Name, tc.id); err != nil {
					t.Errorf("going on with it: %v", err)
				}
				s.let()
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				eventually(t, func() bool { p := s.pool(); return p.Free == 98*unit && len(p.Wiping) == 0 }, "something is left")
				if err := s.p.Delete(t.Context(), "pvc-1"); err != nil {
					t.Error(err)
				}
			}))
		}
	}
}

func TestACopyWhoseMomentIsLostIsNeverFilledWithALaterOne(t *testing.T) {
	for name, tc := range map[string]struct {
		lose func(map[string]*lvmtest.Volume)
		want string
	}{
		"an administrator removed the copy-on-write volume": {func(v map[string]*lvmtest.Volume) { delete(v, "cow-snap-1") }, "is gone"},
		"an administrator renamed the copy-on-write volume": {func(v map[string]*lvmtest.Volume) { v["mine"] = v["cow-snap-1"]; delete(v, "cow-snap-1") }, "is gone"},
		"the kernel invalidated the copy-on-write volume":   {func(v map[string]*lvmtest.Volume) { v["cow-snap-1"].Broken = true }, "could not be written"},
		"the copy-on-write volume and the source are gone":  {func(v map[string]*lvmtest.Volume) { delete(v, "cow-snap-1"); delete(v, "pvc-1") }, "is gone"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := thick(t, 100)
			s.took()
			s.host.Edit(func(groups map[string]*lvmtest.Group) string {
				g := groups[vg.Name]
				tc.lose(g.Volumes)
				g.Seqno++
				return g.Device
			})
			s.restart()
			s.let()
			s.pool()
			s.await("lost", func(got provision.Snapshot) bool { return got.Copying && strings.Contains(got.Problem, tc.want) })
			s.host.On("/dev/vg-a/snap-1", func(v *lvmtest.Volume) {
				if len(v.Tags) == 0 || !strings.Contains(strings.Join(v.Tags, " "), "berth.dev/copying=snap-1") {
					t.Errorf("it bears %v", v.Tags)
				}
			})
			if err := s.p.DeleteSnapshot(t.Context(), "snap-1"); err != nil {
				t.Errorf("deleting it: %v", err)
			}
		}))
	}
}

func TestAKernelWithoutSnapshotsOfThickVolumesIsSaidToLackThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.host.Disturb(func(h *lvmtest.Host) { h.Targets = map[string]lvmtest.Presence{"snapshot": lvmtest.Missing} })
		_, snapshot := s.snapshot("snap-1", "pvc-1")
		_, clone := s.copy("pvc-2", 2, provision.Source{Volume: "pvc-1"})
		for _, err := range []error{snapshot, clone} {
			if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "modprobe dm-snapshot") {
				t.Errorf("got %v", err)
			}
		}
		if p := s.pool(); p.Free != 98*unit {
			t.Errorf("left is %+v", p)
		}
	})
}

func TestACopyThatFailsSaysWhyAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.host.Disturb(func(h *lvmtest.Host) {
			h.Copying = func(string, int64, int64, func() error) error { return errors.New("a broken sector") }
		})
		if _, err := s.snapshot("snap-1", "pvc-1"); err != nil {
			t.Fatal(err)
		}
		s.await("failing", func(got provision.Snapshot) bool {
			return got.Copying && strings.Contains(got.Problem, "a broken sector")
		})
		s.host.Disturb(func(h *lvmtest.Host) { h.Copying = nil })
		if got := s.awaitWhole(); got.Problem != "" {
			t.Errorf("it is whole, and %q", got.Problem)
		}
	})
}

func TestASnapshotWhoseVolumeIsCarvedInVainLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := thick(t, 100)
		s.host.Disturb(func(h *lvmtest.Host) {
			h.Around = only("lvcreate", func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				if strings.Contains(strings.Join(c.Args, " "), "berth.dev/cow=") {
					return do()
				}
				return nil, exit5(c)
			})
		})
		if got, err := s.snapshot("snap-1", "pvc-1"); err == nil {
			t.Fatalf("took %+v", got)
		}
		eventually(t, func() bool { p := s.pool(); return p.Free == 98*unit && p.Foreign == 0 }, "what helped is left")
		s.host.Disturb(func(h *lvmtest.Host) { h.Around = nil })
		s.took()
	})
}
