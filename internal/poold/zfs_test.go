package poold_test

import (
	"testing"
	"time"

	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

func TestConformanceOfZpoolsBesideOtherPoolsAcrossTheSocket(t *testing.T) { conformance.Run(t, zpools) }

func TestConformanceOfZvolsSnapshotsAcrossTheSocket(t *testing.T) {
	conformance.RunSnapshots(t, zpools)
}

// zpools is a node with a zpool and a volume group, behind one socket.
func zpools(t *testing.T) conformance.Harness {
	const dataset = "tank/berth"
	host := zfstest.NewHost(map[string]int64{"tank": 1 << 30})
	host.PutFilesystem(dataset, map[string]string{"berth.dev:pool": dataset})
	made := &conformance.Formats{}
	client, stop := serveZpools(t, host, made)
	on := func(v provision.Volume, f func(*zfstest.Dataset)) { host.On(v.Content.Source, f) }
	return conformance.Harness{
		Provisioner: client,
		Pool:        provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + dataset},
		Restart: func() provision.Provisioner {
			stop()
			client, stop = serveZpools(t, host, made)
			return client
		},
		PutForeign: func(name string, size int64) { host.PutForeign(dataset+"/berth-volumes/"+name, size) },
		Open: func(v provision.Volume) func() {
			on(v, func(d *zfstest.Dataset) { d.Open = true })
			return func() { on(v, func(d *zfstest.Dataset) { d.Open = false }) }
		},
		Scramble: func(provision.Volume) {},
		Formats:  made.Of,
		Write: func(v provision.Volume, text string) {
			on(v, func(d *zfstest.Dataset) { d.Content, d.Written = text, true })
		},
		Read: func(v provision.Volume, bytes int) (text string) {
			on(v, func(d *zfstest.Dataset) { text = d.Content[:bytes] })
			return text
		},
	}
}

func serveZpools(t *testing.T, host *zfstest.Host, made *conformance.Formats) (*poold.Client, func()) {
	t.Helper()
	zpools, err := zfs.New(zfs.Config{Runner: host, Devices: host, Mkfs: made.Make, RefreshInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	disks := newDisks()
	all := provision.NewMux(
		provision.Member{Types: []string{provision.LVM}, Provisioner: memory.New(disks, nil)},
		provision.Member{Types: []string{provision.ZFS}, Provisioner: zpools},
	)
	stopWatching := conformance.Watching(t, zpools.Run, all.Run)
	s := socket(t)
	stopServing := serve(t, poold.Config{Socket: s, Node: poold.NewLocal(all, mountmemory.New(disks)), Healthy: zpools.Healthy})
	client := connected(t, s)
	stop := func() { client.Close(); stopServing(); stopWatching() }
	t.Cleanup(stop)
	return client, stop
}
