package zfs_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

type configuration = zfs.Config

func newProvisioner(c zfs.Config) (*zfs.Provisioner, error) { return zfs.New(c) }

// reported returns the pool of the tests as it is reported.
func reported(t *testing.T, p provision.Provisioner) provision.Pool {
	t.Helper()
	pools, err := p.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range pools {
		if pool.PoolRef == tank {
			return pool
		}
	}
	t.Fatalf("the report lacks the pool: %+v", pools)
	return provision.Pool{}
}

func setState(h *zfstest.Host, state string) {
	h.Edit(func(zpools map[string]*zfstest.Zpool) { zpools["tank"].State = state })
}

func TestAZpoolThatFailsSaysWhatToDoAndTakesNothingNew(t *testing.T) {
	for state, advice := range map[string]string{
		"DEGRADED": "replace the disk", "SUSPENDED": "zpool clear tank", "FAULTED": "zpool status tank",
	} {
		t.Run(state, func(t *testing.T) {
			h := newHost()
			p, _ := start(t, config(h))
			v := create(t, p, "pvc-1", 2)
			setState(h, state)
			if pool := reported(t, p); !strings.Contains(pool.Problem, advice) || len(pool.Volumes) != 1 {
				t.Errorf("reported %+v", pool)
			}
			if _, err := p.Create(t.Context(), request("pvc-2", 1)); !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("creating: %v", err)
			}
			setState(h, "ONLINE")
			if pool := reported(t, p); pool.Problem != "" {
				t.Errorf("after the repair: %+v", pool)
			}
			if got := create(t, p, "pvc-1", 2); got != v {
				t.Errorf("after the repair the volume is %+v", got)
			}
		})
	}
}

func TestASuspendedZpoolIsNeverAskedAndBlocksNoCaller(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 2)
	h.Edit(func(zpools map[string]*zfstest.Zpool) { zpools["tank"].State = "SUSPENDED" })
	h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		if strings.HasPrefix(c.Args[len(c.Args)-1], "tank") {
			t.Errorf("%v was started", c.Args)
		}
		return do()
	}
	reported(t, p)
	if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem == "" {
		t.Errorf("getting: %+v, %v; want a problem", v, err)
	}
	if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("deleting: %v, want ErrUnavailable", err)
	}
	r := request("pvc-2", 1)
	r.Pool.Name = "zfs:other"
	if _, err := p.Create(t.Context(), r); err != nil {
		t.Errorf("creating in another zpool: %v", err)
	}
}

func TestAZpoolThatIsSuspendedBetweenTwoStepsIsNotAsked(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 2)
	snap(t, p, "snap-1", "pvc-1")
	p.Wait()
	h.Around = only("zfs create", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) { // of the trash
		out, err := do()
		setState(h, "SUSPENDED")
		_, _ = p.Report(t.Context())
		h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			t.Errorf("%v was started", c.Args)
			return do()
		}
		return out, err
	})
	if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrUnavailable) || errors.Is(err, provision.ErrInUse) {
		t.Errorf("deleting: %v, want ErrUnavailable", err)
	}
}

func TestVolumesOfAZpoolThatWentAreNotTakenForDeleted(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	awaitChange(t, p) // it runs
	create(t, p, "pvc-1", 2)
	var gone *zfstest.Zpool
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		gone = zpools["tank"]
		delete(zpools, "tank")
		delete(zpools, "other")
	})
	awaitChange(t, p)
	if pool := reported(t, p); !strings.Contains(pool.Problem, "zpool import tank") || len(pool.Volumes) != 1 {
		t.Errorf("reported %+v", pool)
	}
	if pools, err := p.Report(t.Context()); err != nil || len(pools) != 2 { // tank and tank/berth
		t.Errorf("an empty zpool that went is reported: %+v, %v", pools, err)
	}
	if err := p.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrPoolMissing) {
		t.Errorf("deleting: %v, want ErrPoolMissing", err)
	}
	if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem == "" {
		t.Errorf("getting: %+v, %v; want a problem", v, err)
	}
	if _, err := p.Create(t.Context(), request("pvc-2", 1)); !errors.Is(err, provision.ErrPoolMissing) {
		t.Errorf("creating: %v, want ErrPoolMissing", err)
	}
	h.Edit(func(zpools map[string]*zfstest.Zpool) { zpools["tank"] = gone })
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		// The facts may be out of date for one call.
		reported(t, p)
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Errorf("deleting when the zpool came back: %v", err)
		}
	}
}

func TestAZpoolThatDoesNotAnswerHangsItselfAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		c := config(h)
		release := make(chan struct{})
		defer close(release)
		h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			if c.Args[0] == "list" && c.Args[len(c.Args)-1] == "tank" {
				<-release // nor can it be killed
			}
			return do()
		}
		p, err := zfs.New(c)
		if err != nil {
			t.Fatal(err)
		}
		pools, err := p.Report(t.Context())
		if err != nil || len(pools) != 2 || !strings.Contains(pools[1].Problem, "does not answer") || pools[0].Problem != "" {
			t.Fatalf("reported %+v, %v", pools, err)
		}
		r := request("pvc-1", 1)
		r.Pool.Name = "zfs:other"
		if _, err := p.Create(t.Context(), r); err != nil {
			t.Errorf("creating in the zpool that answers: %v", err)
		}
		if _, err := p.Get(t.Context(), "pvc-2"); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("what may be in the silent zpool: %v, want ErrUnavailable", err)
		}
		if _, err := p.Create(t.Context(), request("pvc-3", 1)); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("creating in the silent zpool: %v, want ErrUnavailable", err)
		}
	})
}

func TestAMachineWithoutZpoolsReportsNone(t *testing.T) {
	p, _ := start(t, config(zfstest.NewHost(nil)))
	if pools, err := p.Report(t.Context()); err != nil || len(pools) > 0 {
		t.Errorf("reported %+v, %v", pools, err)
	}
	if _, err := p.Get(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("getting: %v", err)
	}
}
