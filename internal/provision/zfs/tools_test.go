package zfs_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

func TestProgramsOfAnotherSeriesThanTheModulesChangeNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		tools, module string
		fit           bool
	}{
		"the same version":                   {"zfs-2.1.11-1+deb12u1", "2.1.11-1+deb12u1", true},
		"another version of the same series": {"zfs-2.1.11-1", "2.1.5-1ubuntu6~22.04.4", true},
		"an older module":                    {"zfs-2.1.11-1", "2.0.3-9", false},
		"a newer module":                     {"zfs-2.1.11-1", "2.2.4", false},
		"a series of two digits":             {"zfs-2.1.11-1", "2.10.0", false},
		"a very old module":                  {"zfs-2.1.11-1", "0.8.3-1ubuntu12", false},
		"programs without a version":         {"usage: zfs", "2.1.11", false},
		"a module without a version":         {"zfs-2.1.11-1", "unknown", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			p, _ := start(t, config(h))
			v := create(t, p, "pvc-1", 2)
			h.Edit(func(map[string]*zfstest.Zpool) { h.Tools, h.Version = tc.tools, tc.module })
			setState(h, "DEGRADED") // the zpools are imported anew
			setState(h, "ONLINE")
			pool := reported(t, p)
			if (pool.Problem == "") != tc.fit || !tc.fit && !strings.Contains(pool.Problem, tc.module) {
				t.Errorf("the pool's problem: %q", pool.Problem)
			}
			if err := p.Healthy(); (err == nil) != tc.fit {
				t.Errorf("healthy: %v", err)
			}
			if _, err := p.Create(t.Context(), request("pvc-2", 1)); tc.fit && err != nil || !tc.fit && !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("creating: %v", err)
			}
			if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got != v {
				t.Errorf("the volume that was there is %+v, %v", got, err)
			}
			if err := p.Delete(t.Context(), "pvc-1"); tc.fit && err != nil || !tc.fit && !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("deleting: %v", err)
			}
		})
	}
}

func TestProgramsThatAreMissingAreSaidAndTriedAgain(t *testing.T) {
	h := newHost()
	there := false
	h.Around = func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
		if !there {
			return nil, errors.New("no such program")
		}
		return do()
	}
	p, _ := start(t, config(h))
	pools, err := p.Report(t.Context())
	if err != nil || len(pools) != 2 || !strings.Contains(pools[0].Problem, "no such program") {
		t.Fatalf("reported %+v, %v", pools, err)
	}
	there = true
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		zpools["tank"].State, zpools["other"].State = "DEGRADED", "DEGRADED"
	})
	reported(t, p)
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		zpools["tank"].State, zpools["other"].State = "ONLINE", "ONLINE"
	})
	if pool := reported(t, p); pool.Problem != "" {
		t.Errorf("with programs: %q", pool.Problem)
	}
}

func TestAMachineWithoutZpoolsStartsNoProcess(t *testing.T) {
	h := zfstest.NewHost(nil)
	counter, c := counted(h)
	p, _ := start(t, c)
	if pools, err := p.Report(t.Context()); err != nil || len(pools) != 0 {
		t.Errorf("reported %+v, %v", pools, err)
	}
	if _, err := p.Get(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("getting: %v", err)
	}
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Errorf("deleting: %v", err)
	}
	if err := p.Healthy(); err != nil {
		t.Errorf("healthy: %v", err)
	}
	if got := counter.Take(); len(got) > 0 {
		t.Errorf("started %v", got)
	}
}

func TestAZpoolThatComesLaterIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := zfstest.NewHost(nil)
		p, _ := start(t, config(h))
		if pools, err := p.Report(t.Context()); err != nil || len(pools) != 0 {
			t.Fatalf("reported %+v, %v", pools, err)
		}
		awaitChange(t, p) // it runs
		h.Edit(func(zpools map[string]*zfstest.Zpool) {
			zpools["tank"] = &zfstest.Zpool{State: "ONLINE", Size: 1 << 30, Datasets: map[string]*zfstest.Dataset{
				"tank": {Props: map[string]string{}, Snapshots: map[string]*zfstest.Snapshot{}},
			}}
		})
		awaitChange(t, p)
		pools, err := p.Report(t.Context())
		if err != nil || len(pools) != 1 || pools[0].Name != "zfs:tank" || pools[0].Problem != "" || pools[0].Free == 0 {
			t.Errorf("reported %+v, %v", pools, err)
		}
	})
}

func TestAReportWaitsForTheFirstReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		c := config(h)
		c.RefreshInterval = time.Millisecond
		var once sync.Once
		reading, goOn := make(chan struct{}), make(chan struct{})
		h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			if c.Args[0] == "list" {
				once.Do(func() { close(reading) })
				<-goOn
			}
			return do()
		}
		p, _ := start(t, c)
		<-reading // it began before the report
		reports := make(chan []provision.Pool, 1)
		go func() {
			pools, err := p.Report(t.Context())
			if err != nil {
				t.Error(err)
			}
			reports <- pools
		}()
		select {
		case pools := <-reports:
			t.Errorf("reported before anything was read: %+v", pools)
			close(goOn)
			return
		case <-time.After(50 * time.Millisecond):
			close(goOn)
		}
		if pools := <-reports; len(pools) != 3 || pools[1].Problem != "" {
			t.Errorf("reported %+v", pools)
		}
	})
}
