package device_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/device"
	"berth.dev/berth/internal/provision/device/devicetest"
)

// asked counts how often the kernel is asked for its disks. Once late is set, each disk has
// a link of which no event told.
type asked struct {
	*devicetest.Machine
	times atomic.Int32
	late  atomic.Bool
}

func (a *asked) List() ([]device.Disk, error) {
	a.times.Add(1)
	list, err := a.Machine.List()
	if a.late.Load() {
		for i := range list {
			list[i].Links = []string{lateLink(list[i].Name)}
		}
	}
	return list, err
}

func lateLink(disk string) string { return "/dev/disk/by-id/late-" + disk }

// interval is that of the provisioner.
const interval = 10 * time.Second

// looking returns a provisioner that watches disks in a bubble of synctest.
func looking(t *testing.T) (*asked, *device.Provisioner) {
	t.Helper()
	kernel := &asked{Machine: disks()}
	p, err := device.New(device.Config{Disks: kernel, Mkfs: func(context.Context, provision.Volume, string, string) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	conformance.Watching(t, p.Run)
	return kernel, p
}

func TestTheKernelIsAskedOnceInEachIntervalWithAndWithoutReports(t *testing.T) {
	for name, report := range map[string]func(*testing.T, *device.Provisioner){
		"no caller wants reports": func(*testing.T, *device.Provisioner) {},
		"a caller wants a report in each interval": func(t *testing.T, p *device.Provisioner) {
			if _, err := p.Report(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kernel, p := looking(t)
				const intervals = 12
				<-time.After(time.Second) // somewhere in the first one
				for range intervals {
					report(t, p)
					<-time.After(interval)
				}
				synctest.Wait()
				if got := kernel.times.Load(); got != 1+intervals {
					t.Errorf("it was asked %d times at the start and in %d intervals", got, intervals)
				}
			})
		})
	}
}

func TestAChangeWithoutAnEventIsSignalledThoughReportsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kernel, p := looking(t)
		<-time.After(time.Second)
		if _, err := p.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select { // that it watches
		case <-p.Changed():
		default:
		}
		kernel.late.Store(true)
		select {
		case <-p.Changed():
		case <-time.After(2 * interval):
			t.Fatal("nothing was signalled")
		}
		pools, err := p.Report(t.Context())
		if err != nil || len(pools) != 3 {
			t.Fatalf("reported %+v, %v", pools, err)
		}
		for _, pool := range pools {
			if !slices.Contains(pool.Paths, lateLink(pool.Paths[0][len("/dev/"):])) {
				t.Errorf("reported %+v", pool)
			}
		}
	})
}
