package conformance

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
)

func differentPoolsAtOnce(t *testing.T, f fixture) {
	got := make([]provision.Volume, len(f.Pools))
	var wg sync.WaitGroup
	for i := range f.Pools {
		f := f.on(t, i)
		wg.Go(func() {
			var err error
			if got[i], err = f.Provisioner.Create(t.Context(), f.request(i, 1)); err != nil {
				t.Errorf("volume %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range f.Pools {
		f.on(t, i).holds(t, got[i])
	}
}

func onePoolAtOnce(t *testing.T, f fixture) {
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { _, errs[i] = f.Provisioner.Create(t.Context(), f.request(i, 1)) })
	}
	wg.Wait()
	made := 0
	for i, err := range errs {
		if err == nil {
			made++
		} else if !errors.Is(err, provision.ErrNoSpace) {
			t.Errorf("volume %d: %v, want ErrNoSpace", i, err)
		}
	}
	if p := f.pool(t); made != 1 || len(p.Volumes) != 1 {
		t.Errorf("%d requests succeeded and the pool holds %+v, want 1", made, p.Volumes)
	}
}

func deletesWhole(t *testing.T, f fixture) {
	second := f.on(t, 1)
	kept := second.create(t, 2, 1)
	f.create(t, 1, 1)
	if err := f.Provisioner.Delete(t.Context(), id(1)); err != nil {
		t.Fatal(err)
	}
	_, err := f.Provisioner.Get(t.Context(), id(1)) // though the pool need not be free yet
	wantError(t, err, provision.ErrNotFound)
	f.holds(t)
	f.delete(t, 1)
	f.delete(t, 3)
	f.holds(t)
	second.holds(t, kept)
	f.create(t, 1, 1)
}

func forgets(t *testing.T, f fixture) {
	v := f.create(t, 1, 1)
	f.Write(v, secret)
	if got := f.Read(v, len(secret)); got != secret {
		t.Fatalf("wrote %q and read %q", secret, got)
	}
	f.delete(t, 1)
	v = f.create(t, 2, 1)
	if got := f.Read(v, len(secret)); strings.Trim(got, "\x00") != "" {
		t.Errorf("the next volume begins with %q", got)
	}
}

func foreignWhole(t *testing.T, f fixture) {
	second := f.on(t, 1)
	v := second.create(t, 1, 1)
	f.PutForeign("theirs", f.unit)
	f.Provisioner = f.Restart()
	second.Provisioner = f.Provisioner
	second.holds(t, v)
	f.holds(t)
	if p := f.pool(t); p.Free != 0 || p.Foreign != p.Total {
		t.Errorf("a pool that others use: %+v", p)
	}
	_, err := f.Provisioner.Create(t.Context(), f.request(2, 1))
	wantError(t, err, provision.ErrNoSpace)
	f.holds(t)
}

func restartsWhole(t *testing.T, f fixture) {
	second := f.on(t, 1)
	a, b := f.create(t, 1, 1), second.create(t, 2, 1)
	second.format(t, 2, provision.Ext4)
	b.Filesystem = provision.Ext4
	before := f.pool(t)
	f.Provisioner = f.Restart()
	second.Provisioner = f.Provisioner
	f.holds(t, a)
	second.holds(t, b)
	if got := f.get(t, 2); got != b {
		t.Errorf("after the restart %+v, before %+v", got, b)
	}
	if after := f.pool(t); after.Total != before.Total || after.Free != before.Free || after.Foreign != before.Foreign {
		t.Errorf("after the restart %+v, before %+v", after, before)
	}
	if again := f.create(t, 1, 1); again != a {
		t.Errorf("creating what exists after the restart: %+v, want %+v", again, a)
	}
}

func signalsWhole(t *testing.T, f fixture) {
	second := f.on(t, 1)
	for name, change := range map[string]func(){
		"own":     func() { second.create(t, 1, 1) },
		"foreign": func() { f.PutForeign("theirs", f.unit) },
	} {
		quiet(f.Provisioner.Changed())
		change()
		select {
		case <-f.Provisioner.Changed():
		case <-time.After(30 * time.Second):
			t.Errorf("%s change was not signalled", name)
		}
	}
	// A receiver of the signal that asks for a report sees the changes.
	if own, theirs := second.pool(t), f.pool(t); len(own.Volumes) != 1 || theirs.Foreign != f.unit {
		t.Errorf("the report does not show the changes: %+v and %+v", own, theirs)
	}
}
