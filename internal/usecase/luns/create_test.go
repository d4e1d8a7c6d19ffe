package luns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/volumes"
)

// claim is the request for a numbered volume of 1 GiB.
func claim(n int, change ...func(*volumes.Request)) volumes.Request {
	r := volumes.Request{
		Name: fmt.Sprintf("pvc-00000000-0000-0000-0000-%012d", n), Size: volumes.Size{Required: gi}, Mode: v1alpha1.Filesystem,
		PoolClass: "san", Attachments: &volumes.Attachments{MaxShares: 2, Factor: 2},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// service is a process that writes by a client.
func service(s *lagging.Server, c client.Client) *Service {
	return New(driver.Disk().View(c), driver.Disk().Live(s.Live()), nil, &volumes.Watchers{})
}

// ledger has the objects of a server by what they say of disks.
type ledger struct {
	luns    []v1alpha1.LUN
	volumes []v1alpha1.Volume
}

func read(t *testing.T, s *lagging.Server) (l ledger) {
	t.Helper()
	var luns v1alpha1.LUNList
	var all v1alpha1.VolumeList
	if err := errors.Join(s.Live().List(t.Context(), &luns), s.Live().List(t.Context(), &all)); err != nil {
		t.Fatal(err)
	}
	return ledger{luns.Items, all.Items}
}

// settled is the ledger after each LUN's state was judged until no state changes, as their reconciler does.
func (l ledger) settled(t *testing.T, s *lagging.Server) ledger {
	t.Helper()
	for range 10 {
		changed := false
		for i := range l.luns {
			n, f := &l.luns[i], &Facts{LUNs: l.luns, Volumes: l.volumes}
			for j := range l.volumes {
				if n.Has(&l.volumes[j]) {
					f.Holder = &l.volumes[j]
				}
			}
			if next := Judge(n, f); !equality.Semantic.DeepEqual(next, n.Status) {
				changed, n.Status = true, next
				if err := s.Others().Status().Update(t.Context(), n); err != nil {
					t.Fatal(err)
				}
			}
		}
		if l = read(t, s); !changed {
			return l
		}
	}
	t.Fatal("the states of the LUNs do not settle")
	return l
}

// consistent checks that no two Volumes have one disk, and that a Volume's disk is that of a LUN which names it.
func (l ledger) consistent(t *testing.T) {
	t.Helper()
	for i := range l.volumes {
		v, d := &l.volumes[i], diskOf(&l.volumes[i])
		if d == nil {
			continue
		}
		named := 0
		for j := range l.luns {
			if same(l.luns[j].Spec.Disk, *d) && l.luns[j].Has(v) {
				named++
			}
		}
		if named != 1 {
			t.Errorf("%s has %s, and %d LUNs say so", v.Name, d.Handle, named)
		}
		for j := range i {
			if o := diskOf(&l.volumes[j]); o != nil && same(*o, *d) {
				t.Errorf("%s and %s have one disk", v.Name, l.volumes[j].Name)
			}
		}
	}
}

func TestAVolumeGetsTheDiskOfALUN(t *testing.T) {
	s := lagging.New(t, lun("small", gi/2), lun("fits", 2*gi, func(l *v1alpha1.LUN) { l.Spec.Persistent = true }), lun("large", 9*gi))
	got, err := service(s, s.Client()).Create(t.Context(), claim(1))
	if err != nil || got.Capacity != 2*gi {
		t.Fatalf("%+v, %v", got, err)
	}
	l := read(t, s)
	a := l.volumes[0].Spec.Replication.Attachments
	if *a.Disk != disk("fits") || !a.Persistent || !a.Blank || a.MaxShares != 2 || l.volumes[0].Spec.Placement != v1alpha1.PlacementVolume {
		t.Errorf("the Volume is %+v", l.volumes[0].Spec)
	}
	l.consistent(t)
	again, err := service(s, s.Client()).Create(t.Context(), claim(1))
	if err != nil || again.ID != got.ID || len(read(t, s).volumes) != 1 {
		t.Errorf("asked again it is %+v, %v", again, err)
	}
}

func TestSeveralNodesWriteADiskWhoseReservationsPersist(t *testing.T) {
	asks := claim(1, func(r *volumes.Request) {
		r.Mode, r.Attachments = v1alpha1.Block, &volumes.Attachments{MaxShares: 2, Factor: 1, ManyWriters: true}
	})
	s := lagging.New(t, lun("forgets", gi, persistent(false)), lun("keeps", 2*gi, persistent(true)))
	made, err := service(s, s.Client()).Create(t.Context(), asks)
	if err != nil || !made.ManyWriters {
		t.Fatalf("%+v, %v", made, err)
	}
	if v := read(t, s).volumes[0]; v.Spec.Sharing != v1alpha1.Shared || *v.Spec.Replication.Attachments.Disk != disk("keeps") {
		t.Errorf("the volume is %+v", v.Spec)
	}
	exclusive := asks
	exclusive.Attachments = &volumes.Attachments{MaxShares: 2, Factor: 1}
	if _, err := service(s, s.Client()).Create(t.Context(), exclusive); !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), "sharing is Shared") {
		t.Errorf("asked for one writer the answer is %v", err)
	}
}

func TestAClassDecidesWhetherItsVolumesFailOverByThemselves(t *testing.T) {
	asks := func(onDemand bool) volumes.Request {
		return claim(1, func(r *volumes.Request) { r.Attachments.OnDemand = onDemand })
	}
	for _, onDemand := range []bool{false, true} {
		s := lagging.New(t, lun("a", 2*gi))
		made, err := service(s, s.Client()).Create(t.Context(), asks(onDemand))
		if err != nil {
			t.Fatal(err)
		}
		f := read(t, s).volumes[0].Spec.Replication.Failover
		if f == nil || f.Automatic == onDemand {
			t.Errorf("on demand %t: spec.replication.failover is %+v", onDemand, f)
		}
		if again, err := service(s, s.Client()).Create(t.Context(), asks(onDemand)); err != nil || again.ID != made.ID {
			t.Errorf("on demand %t: asked again it is %+v, %v", onDemand, again, err)
		}
		_, err = service(s, s.Client()).Create(t.Context(), asks(!onDemand))
		if !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), "spec.replication.failover.automatic") {
			t.Errorf("on demand %t: asked for the other one the answer is %v", onDemand, err)
		}
	}
}

func TestAClassDecidesWhetherFilesystemsAreChecked(t *testing.T) {
	asks := func(check bool) volumes.Request {
		return claim(1, func(r *volumes.Request) { r.Attachments.Check = check })
	}
	for _, check := range []bool{false, true} {
		s := lagging.New(t, lun("a", 2*gi))
		if _, err := service(s, s.Client()).Create(t.Context(), asks(check)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, s).volumes[0].Spec.Replication.Attachments.CheckFilesystem; got != check {
			t.Errorf("a class with checks %t makes a volume with checks %t", check, got)
		}
		_, err := service(s, s.Client()).Create(t.Context(), asks(!check))
		if !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), "checkFilesystem") {
			t.Errorf("checks %t: asked for the other one the answer is %v", check, err)
		}
	}
}

func TestWithoutALUNNothingIsMade(t *testing.T) {
	s := lagging.New(t, lun("small", gi/2))
	_, err := service(s, s.Client()).Create(t.Context(), claim(1))
	if l := read(t, s); !errors.Is(err, usecase.ErrUnplaceable) || !strings.Contains(err.Error(), "1 too small") || len(l.volumes) > 0 || l.luns[0].Status.Volume != nil {
		t.Errorf("%v, and there is %+v", err, l)
	}
}

func TestARequestThatNoSharedDiskMeetsIsRefused(t *testing.T) {
	for name, change := range map[string]func(*volumes.Request){
		"a copy":                   func(r *volumes.Request) { r.Source = &v1alpha1.VolumeSource{Snapshot: "snap-1"} },
		"a filesystem of pools":    func(r *volumes.Request) { r.FSType = v1alpha1.Dataset },
		"a limit below the size":   func(r *volumes.Request) { r.Size.Limit = 1 },
		"shares that are not said": func(r *volumes.Request) { r.Attachments = nil },
	} {
		s := lagging.New(t, lun("a", 2*gi))
		if v, err := service(s, s.Client()).Create(t.Context(), claim(1, change)); err == nil || len(read(t, s).volumes) > 0 {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	s := lagging.New(t, lun("a", 2*gi))
	if _, err := service(s, s.Client()).Create(t.Context(), claim(1)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*volumes.Request){
		"more shares":  func(r *volumes.Request) { r.Attachments = &volumes.Attachments{MaxShares: 3, Factor: 2} },
		"a block":      func(r *volumes.Request) { r.Mode = v1alpha1.Block },
		"another size": func(r *volumes.Request) { r.Size.Required = 3 * gi },
	} {
		if _, err := service(s, s.Client()).Create(t.Context(), claim(1, change)); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var errKilled = errors.New("killed")

// The process is killed before or after each of its writes. The same call, made by the next process, finishes, and
// another volume gets another LUN.
func TestAProcessThatIsKilledAtAnyWriteLeavesWhatTheNextOneFinishes(t *testing.T) {
	writes := 0
	for after := range 2 {
		for cut := range 10 {
			s := lagging.New(t, lun("a", 2*gi), lun("b", 2*gi))
			done := 0
			kill := func(lagging.Write) error {
				if done++; done > cut {
					return errKilled
				}
				return nil
			}
			if s.Before = kill; after == 1 {
				s.Before, s.After = nil, kill
			}
			_, err := service(s, s.Client()).Create(t.Context(), claim(1))
			writes = max(writes, done)
			s.Before, s.After = nil, nil
			read(t, s).consistent(t)
			if err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			for _, n := range []int{2, 1} {
				if _, err := service(s, s.Client()).Create(t.Context(), claim(n)); err != nil {
					t.Errorf("cut %d: %v", cut, err)
				}
			}
			l := read(t, s).settled(t, s)
			l.consistent(t)
			if len(l.volumes) != 2 {
				t.Errorf("cut %d: there are %d volumes", cut, len(l.volumes))
			}
		}
	}
	if writes != 4 {
		t.Errorf("a volume takes %d writes, and the cuts are to be at each", writes)
	}
}

// Another process works between any two writes: for the same volume, for another one, or a person names the disk.
func TestOfTwoProcessesOneGivesALUN(t *testing.T) {
	hand := func(ctx context.Context, s *lagging.Server, number string) error {
		return s.Others().Create(ctx, volume("pvc-00000000-0000-0000-0000-00000000000f", number))
	}
	for name, meanwhile := range map[string]func(ctx context.Context, s *lagging.Server) error{
		"the same volume": func(ctx context.Context, s *lagging.Server) error {
			_, err := service(s, s.Others()).Create(ctx, claim(1))
			return err
		},
		"another volume": func(ctx context.Context, s *lagging.Server) error {
			_, err := service(s, s.Others()).Create(ctx, claim(2))
			return err
		},
		"the same volume begins": func(ctx context.Context, s *lagging.Server) error {
			writes := 0
			_, err := service(s, stopping{s.Others(), &writes}).Create(ctx, claim(1))
			return client.IgnoreAlreadyExists(ignore(err, errKilled))
		},
		"a person names the first disk":  func(ctx context.Context, s *lagging.Server) error { return hand(ctx, s, "a") },
		"a person names the second disk": func(ctx context.Context, s *lagging.Server) error { return hand(ctx, s, "b") },
	} {
		for at := range 4 {
			t.Run(fmt.Sprintf("%s before write %d", name, at), func(t *testing.T) {
				s := lagging.New(t, lun("a", 2*gi), lun("b", 2*gi), lun("c", 2*gi))
				done := 0
				s.Before = func(lagging.Write) error {
					if done++; done != at+1 {
						return nil
					}
					return meanwhile(t.Context(), s)
				}
				_, err := service(s, s.Client()).Create(t.Context(), claim(1))
				s.Before = nil
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(name, "a person") && at == 3 {
					return // between the question and the write: see TestADisputeIsTold
				}
				read(t, s).settled(t, s).consistent(t)
			})
		}
	}
}

// stopping fails from the third write on.
type stopping struct {
	client.Client
	writes *int
}

func (c stopping) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	if *c.writes++; *c.writes > 1 {
		return errKilled
	}
	return c.Client.Update(ctx, o, opts...)
}

func ignore(err, class error) error {
	if errors.Is(err, class) {
		return nil
	}
	return err
}

func TestADisputeIsTold(t *testing.T) {
	s := lagging.New(t, lun("a", 2*gi))
	done := 0
	s.Before = func(lagging.Write) error {
		if done++; done < 4 {
			return nil
		}
		return s.Others().Create(t.Context(), volume("pvc-00000000-0000-0000-0000-00000000000f", "a"))
	}
	if _, err := service(s, s.Client()).Create(t.Context(), claim(1)); err != nil {
		t.Fatal(err)
	}
	l := read(t, s).settled(t, s)
	if got := l.luns[0].Status; got.State != v1alpha1.LUNBound || !strings.Contains(got.Message, "names this disk, too") {
		t.Errorf("the LUN says %+v", got)
	}
}

func TestAVolumeGrowsToWhatItsLUNHas(t *testing.T) {
	v := volume("pvc-00000000-0000-0000-0000-000000000001", "a")
	hand := volume("pvc-00000000-0000-0000-0000-000000000002", "b")
	bare := volume("pvc-00000000-0000-0000-0000-000000000003", "")
	s := lagging.New(t, lun("a", 3*gi, of(v)), v, hand, bare)
	for name, tc := range map[string]struct {
		id   string
		size volumes.Size
		want int64
		is   error
	}{
		"as large as the LUN":       {id: v.Name, size: volumes.Size{Required: 2 * gi}, want: 3 * gi},
		"again":                     {id: v.Name, size: volumes.Size{Required: 3 * gi}, want: 3 * gi},
		"larger than the LUN":       {id: v.Name, size: volumes.Size{Required: 4 * gi}, is: usecase.ErrOutOfRange},
		"the LUN is over the limit": {id: v.Name, size: volumes.Size{Required: 2 * gi, Limit: 2 * gi}, is: usecase.ErrOutOfRange},
		"a disk that no LUN names":  {id: hand.Name, size: volumes.Size{Required: 2 * gi}, want: 2 * gi},
		"a volume without a disk":   {id: bare.Name, size: volumes.Size{Required: 2 * gi}, is: provision.ErrUnavailable},
		"no volume":                 {id: "pvc-00000000-0000-0000-0000-000000000009", size: volumes.Size{Required: 1}, is: provision.ErrNotFound},
		"a size that is none":       {id: v.Name, size: volumes.Size{Required: -1}, is: provision.ErrInvalid},
	} {
		got, err := service(s, s.Client()).Expand(t.Context(), tc.id, tc.size)
		if got.Capacity != tc.want || !errors.Is(err, tc.is) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
