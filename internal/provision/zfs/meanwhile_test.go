package zfs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

// busy is a machine on which something happens while a volume is being made.
type busy struct {
	*zfstest.Host
	// unlisted is how often the kernel does not tell its zpools.
	unlisted int
	// written is called once, while a source's data in memory is written out.
	written func()
}

func (b *busy) Pools() ([]zfs.Pool, error) {
	if b.unlisted--; b.unlisted >= 0 {
		return nil, errors.New("the kernel does not tell")
	}
	return b.Host.Pools()
}

func (b *busy) WriteOut(ctx context.Context, dataset string, files bool) error {
	if happens := b.written; happens != nil {
		b.written = nil
		happens()
	}
	return b.Host.WriteOut(ctx, dataset, files)
}

func (b *busy) provisioner(t *testing.T) *zfs.Provisioner {
	t.Helper()
	c := config(b.Host)
	c.Devices = b
	p, err := newProvisioner(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// in asks for a volume in another pool.
func in(pool, id string) provision.CreateRequest {
	r := request(id, 1)
	r.Pool.Name = pool
	return r
}

func TestAVolumeIsNotMadeBeforeItIsKnownWhereItIs(t *testing.T) {
	b := &busy{Host: newHost()}
	made(t, b.provisioner(t), in("zfs:other", "pvc-1"))
	b.unlisted = 1
	p := b.provisioner(t)
	for _, want := range []error{provision.ErrUnavailable, provision.ErrConflict} {
		if v, err := p.Create(t.Context(), request("pvc-1", 1)); !errors.Is(err, want) {
			t.Errorf("%+v, %v; want %v", v, err, want)
		}
	}
	if there(b.Host, volumes+"pvc-1") {
		t.Error("it is there twice")
	}
}

func TestAPoolThatCameMeanwhileTakesVolumes(t *testing.T) {
	b := &busy{Host: newHost()}
	p := b.provisioner(t)
	reported(t, p)
	b.PutFilesystem("tank/late", map[string]string{"berth.dev:pool": "tank/late"})
	made(t, p, in("zfs:tank/late", "pvc-1"))
	late := zfstest.NewHost(map[string]int64{"late": 1 << 30}).Take("late")
	b.Edit(func(zpools map[string]*zfstest.Zpool) { zpools["late"] = late })
	made(t, p, in("zfs:late", "pvc-2"))
	b.unlisted = 1
	var said error
	for _, want := range []error{provision.ErrUnavailable, provision.ErrPoolMissing} {
		if _, said = p.Create(t.Context(), in("zfs:tank/none", "pvc-3")); !errors.Is(said, want) {
			t.Fatalf("in a pool that is not there: %v; want %v", said, want)
		}
	}
	if !strings.Contains(said.Error(), "zfs set berth.dev:pool=tank/none tank/none") {
		t.Errorf("%v; want it to say how to make it a pool", said)
	}
	if v, err := p.Create(t.Context(), in("zfs:tank/"+strings.Repeat("a", 100), "pvc-4")); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("in a pool of too long a name: %+v, %v", v, err)
	}
}

func TestAPoolThatWentMeanwhileIsMissing(t *testing.T) {
	copied := in("zfs:other", "pvc-2")
	copied.Source.Volume = "pvc-1"
	for name, tc := range map[string]struct {
		request provision.CreateRequest
		gone    string // zpool or dataset
	}{
		"the zpool": {copied, "other"}, "the dataset": {in("zfs:tank/late", "pvc-2"), "tank/late"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &busy{Host: newHost()}
			b.PutFilesystem("tank/late", map[string]string{"berth.dev:pool": "tank/late"})
			p := b.provisioner(t)
			create(t, p, "pvc-1", 1)
			goes := func() {
				b.Edit(func(zpools map[string]*zfstest.Zpool) {
					delete(zpools, tc.gone)
					delete(zpools["tank"].Datasets, tc.gone)
				})
			}
			if b.written = func() { goes(); reported(t, p) }; tc.request.Source.Volume == "" {
				goes() // and the provisioner is not told
			}
			if v, err := p.Create(t.Context(), tc.request); !errors.Is(err, provision.ErrPoolMissing) {
				t.Errorf("%+v, %v; want ErrPoolMissing", v, err)
			}
		})
	}
}

func TestAVolumeThatIsMadeInAnotherPoolMeanwhileIsAConflict(t *testing.T) {
	b := &busy{Host: newHost()}
	p := b.provisioner(t)
	create(t, p, "pvc-1", 1)
	r := request("pvc-2", 1)
	r.Source.Volume = "pvc-1"
	b.written = func() { made(t, p, r) }
	other := r
	other.Pool.Name = "zfs:tank"
	if v, err := p.Create(t.Context(), other); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("%+v, %v; want ErrConflict", v, err)
	}
}

// A caller that waits to delete the leftover of a volume may find that the whole zpool went.
func TestTheLeftoverOfACrashIsGoneWithItsZpool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{Host: newHost()}
		left(b.Host, volumes+"pvc-1", 0)
		p := b.provisioner(t)
		reported(t, p)
		deleted := make(chan error, 1)
		b.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			switch c.Operation {
			case "zfs destroy": // it is still there, and is being made again
				go func() { deleted <- p.Delete(t.Context(), "pvc-1") }()
				synctest.Wait()
			case "zfs create":
				b.Take("tank")
				if _, err := p.Report(t.Context()); err != nil {
					t.Error(err)
				}
			}
			return do()
		}
		if v, err := p.Create(t.Context(), request("pvc-1", 1)); !errors.Is(err, provision.ErrPoolMissing) {
			t.Errorf("%+v, %v; want ErrPoolMissing", v, err)
		}
		if err := <-deleted; err != nil {
			t.Errorf("deleting it: %v", err)
		}
	})
}
