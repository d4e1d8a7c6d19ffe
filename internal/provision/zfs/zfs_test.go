package zfs_test

import (
	"context"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/provision/zfs/zpool"
	"berth.dev/berth/internal/run/runtest"
)

var tank = provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank/berth"}

const (
	unit    = zpool.Unit
	parent  = "tank/berth"
	volumes = parent + "/berth-volumes/"
	devices = "/dev/zvol/"
)

// hidden are the properties of the filesystems that Berth makes for itself.
var hidden = map[string]string{"mountpoint": "none", "canmount": "off"}

// newHost has a zpool with one filesystem that is a pool.
func newHost() *zfstest.Host {
	h := zfstest.NewHost(map[string]int64{"tank": 1 << 30, "other": 1 << 30})
	h.PutFilesystem(parent, map[string]string{"berth.dev:pool": parent})
	return h
}

func TestConformanceOnPlayedZFS(t *testing.T) { conformance.Run(t, harness) }

func TestConformanceOfSnapshotsOnPlayedZFS(t *testing.T) { conformance.RunSnapshots(t, harness) }

func TestPlayedZFSPassesTheIdentitySuite(t *testing.T) {
	start := func(t *testing.T) conformance.Harness {
		host := newHost()
		h := harnessOf(t, host)
		h.Twin = func(v provision.Volume) func() {
			copied(host, volumes+v.ID, "other/berth-volumes/"+v.ID)
			return func() {
				host.Edit(func(zpools map[string]*zfstest.Zpool) { delete(zpools["other"].Datasets, "other/berth-volumes/"+v.ID) })
			}
		}
		h.Away = func() func() {
			var away *zfstest.Zpool
			host.Edit(func(zpools map[string]*zfstest.Zpool) {
				away = zpools["tank"]
				delete(zpools, "tank")
			})
			return func() { host.Edit(func(zpools map[string]*zfstest.Zpool) { zpools["tank"] = away }) }
		}
		return h
	}
	conformance.RunTwins(t, start)
	conformance.RunAway(t, start)
}

func harness(t *testing.T) conformance.Harness { return harnessOf(t, newHost()) }

func harnessOf(t *testing.T, host *zfstest.Host) conformance.Harness {
	made := &conformance.Formats{Mkfs: host.Mkfs}
	c := config(host)
	c.Mkfs, c.RefreshInterval = made.Make, 10*time.Millisecond
	p, stop := start(t, c)
	return conformance.Harness{
		Provisioner: p,
		Pool:        tank,
		Restart: func() provision.Provisioner {
			stop()
			p, stop = start(t, c)
			return p
		},
		PutForeign: func(name string, size int64) { host.PutForeign(volumes+name, size) },
		Open: func(v provision.Volume) func() {
			host.On(v.Content.Source, func(d *zfstest.Dataset) { d.Open = true })
			return func() { host.On(v.Content.Source, func(d *zfstest.Dataset) { d.Open = false }) }
		},
		Mislead:  func(v, other provision.Volume) { host.Mislead(v.Content.Source, other.Content.Source) },
		Scramble: func(provision.Volume) {},
		Formats:  made.Of,
		Write: func(v provision.Volume, text string) {
			host.On(v.Content.Source, func(d *zfstest.Dataset) { d.Content, d.Written = text, true })
		},
		Read: func(v provision.Volume, bytes int) (text string) {
			host.On(v.Content.Source, func(d *zfstest.Dataset) { text = d.Content[:bytes] })
			return text
		},
	}
}

func config(host *zfstest.Host) zfs.Config {
	return zfs.Config{
		Runner: host, Devices: host, RefreshInterval: time.Hour, Pause: func(context.Context) {},
		Mkfs: host.Mkfs,
	}
}

func counted(host *zfstest.Host) (*runtest.Counter, zfs.Config) {
	c := config(host)
	counter := runtest.Count(host)
	c.Runner = counter
	return counter, c
}

// start makes a provisioner and runs it until the test or the returned stop ends
// it.
func start(t testing.TB, c zfs.Config) (p *zfs.Provisioner, stop func()) {
	t.Helper()
	p, err := zfs.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p, conformance.Watching(t, p.Run)
}

func request(id string, units int64) provision.CreateRequest {
	return provision.CreateRequest{ID: id, Pool: tank, Size: units * unit, Labels: map[string]string{"claim": "data", "namespace": "shop"}}
}
