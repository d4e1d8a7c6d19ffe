package zfs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

var errCrash = errors.New("the process ends here")

// crash ends the process at a command that changes something: before it, or after it and before
// the process knows the result. If the command makes something, it can also end halfway, as in a
// loss of power. Each of these moments has a number.
type crash struct {
	halve    func(run.Command) // leaves what ZFS makes first
	at, seen int
	dead     bool
}

func (c *crash) around(cmd run.Command, do func() ([]byte, error)) ([]byte, error) {
	if c.dead {
		return nil, errCrash
	}
	if cmd.Args[0] == "list" || cmd.Args[0] == "version" {
		return do()
	}
	if c.here() {
		return nil, errCrash
	}
	out, err := do()
	if makes := cmd.Operation == "zfs create" || cmd.Operation == "zfs clone"; makes && c.here() {
		c.halve(cmd)
		return nil, errCrash
	}
	if c.here() {
		return nil, errCrash
	}
	return out, err
}

func (c *crash) here() bool {
	c.seen++
	c.dead = c.dead || c.seen == c.at
	return c.dead
}

// story says how the volumes of a life are asked for and formatted.
type story struct {
	ask        func(*provision.CreateRequest)
	filesystem string
}

var (
	zvols = story{func(*provision.CreateRequest) {}, provision.Ext4}
	files = story{func(r *provision.CreateRequest) { r.Tree = provision.Dataset }, provision.Dataset}
)

// life returns the steps of a life of volumes and snapshots that depend on each other in every
// way.
func (s story) life(ctx context.Context, p *zfs.Provisioner) []func() error {
	volume := func(id string, units int64, from provision.Source) func() error {
		return func() error {
			r := request(id, units)
			r.Source = from
			s.ask(&r)
			_, err := p.Create(ctx, r)
			return err
		}
	}
	snapshot := func(id, of string) func() error {
		return func() error {
			_, err := p.Snapshot(ctx, provision.SnapshotRequest{ID: id, Volume: of})
			return err
		}
	}
	remove := func(id string) func() error { return func() error { return p.Delete(ctx, id) } }
	forget := func(id string) func() error { return func() error { return p.DeleteSnapshot(ctx, id) } }
	return []func() error{
		volume("pvc-a", 2, provision.Source{}),
		func() error {
			_, err := p.Format(ctx, provision.FormatRequest{ID: "pvc-a", Filesystem: s.filesystem})
			return err
		},
		snapshot("snap-a", "pvc-a"),
		volume("pvc-b", 3, provision.Source{Snapshot: "snap-a"}),
		snapshot("snap-b", "pvc-b"),
		volume("pvc-c", 2, provision.Source{Volume: "pvc-a"}),
		func() error {
			_, err := p.Expand(ctx, provision.ExpandRequest{ID: "pvc-c", Size: 5 * unit})
			return err
		},
		remove("pvc-a"), remove("pvc-b"),
		volume("pvc-d", 3, provision.Source{Snapshot: "snap-b"}),
		forget("snap-a"), forget("snap-b"),
		remove("pvc-d"), remove("pvc-c"),
	}
}

// seen returns the report of all pools as text, after all sweeps: before, it depends on time.
func seen(t *testing.T, p *zfs.Provisioner) []string {
	t.Helper()
	p.Wait()
	pools, err := p.Report(t.Context())
	p.Wait() // for the sweep that the report began
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, pool := range pools {
		lines = append(lines, fmt.Sprint(pool.Name, pool.Total, pool.Foreign, pool.Free, pool.Problem, pool.Volumes, pool.Snapshots))
	}
	return lines
}

func fresh(t *testing.T, h *zfstest.Host) *zfs.Provisioner {
	t.Helper()
	c := config(h)
	c.Now = func() time.Time { return time.Unix(1e9, 0) }
	p, err := zfs.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// datasets returns the names of all datasets and snapshots.
func datasets(h *zfstest.Host) (names []string) {
	h.Edit(func(zpools map[string]*zfstest.Zpool) {
		for _, z := range zpools {
			for name, d := range z.Datasets {
				names = append(names, name)
				for at := range d.Snapshots {
					names = append(names, name+"@"+at)
				}
			}
		}
	})
	slices.Sort(names)
	return names
}

func TestACrashAnywhereConverges(t *testing.T) {
	t.Run("zvols", zvols.crashEverywhere)
	t.Run("datasets", files.crashEverywhere)
}

func (s story) crashEverywhere(t *testing.T) {
	h := newHost()
	p := fresh(t, h)
	var states [][]string
	count := &crash{halve: h.Halve}
	h.Around = count.around
	for _, step := range s.life(t.Context(), p) {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		states = append(states, seen(t, p))
	}
	want := datasets(h)
	if rest := strings.Join(want, " "); rest != "other tank tank/berth tank/berth/berth-trash tank/berth/berth-volumes" {
		t.Errorf("a whole life leaves %s", rest)
	}
	for at := 1; at <= count.seen; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) { s.crashAt(t, at, states, want) })
	}
}

func (s story) crashAt(t *testing.T, at int, states [][]string, want []string) {
	h := newHost()
	c := &crash{halve: h.Halve, at: at}
	h.Around = c.around
	p := fresh(t, h)
	for i := range states {
		err := s.life(t.Context(), p)[i]()
		if p.Wait(); c.dead {
			c.dead = false
			p = fresh(t, h)
			err = s.life(t.Context(), p)[i]() // the caller asks again
		}
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if diff := cmp.Diff(states[i], seen(t, p)); diff != "" {
			t.Errorf("after step %d the pools are (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(states[i], seen(t, fresh(t, h))); diff != "" {
			t.Errorf("after step %d a new process sees (-want +got):\n%s", i, diff)
		}
	}
	if diff := cmp.Diff(want, datasets(h)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	if c.seen < at {
		t.Error("it did not crash")
	}
}
