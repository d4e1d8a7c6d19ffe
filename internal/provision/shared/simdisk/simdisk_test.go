package simdisk_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/conformance"
	"berth.dev/berth/internal/provision/shared/simdisk"
	"berth.dev/berth/internal/run"
)

var disk = shared.Disk{Volume: "vol", Handle: "lun1", Identity: "wwn:1"}

func config() simdisk.Config {
	return simdisk.Config{Identity: disk.Identity, Shares: 2, Persistent: true}
}

// opened returns a target in a new directory.
func opened(t *testing.T, c simdisk.Config) *simdisk.Target {
	t.Helper()
	target, err := simdisk.Open(t.TempDir(), c)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestTheSimulatedDiskConforms(t *testing.T) {
	for name, world := range map[string]func(t *testing.T) *conformance.World{
		"in memory": func(t *testing.T) *conformance.World { return world(t, simdisk.New(config()), false) },
		"in memory, a node's next session known": func(t *testing.T) *conformance.World {
			c := config()
			c.Known = true
			w := world(t, simdisk.New(c), false)
			w.Known = true
			return w
		},
		"in memory, forgetful": func(t *testing.T) *conformance.World {
			c := config()
			c.Persistent = false
			return world(t, simdisk.New(c), false)
		},
		"in memory, slow": func(t *testing.T) *conformance.World {
			c := config()
			c.Slow = true
			return world(t, simdisk.New(c), true)
		},
		"in a directory": func(t *testing.T) *conformance.World { return world(t, opened(t, config()), false) },
	} {
		t.Run(name, func(t *testing.T) { conformance.Run(t, world) })
	}
}

// world plays the conformance suite's nodes on a target.
func world(t *testing.T, target *simdisk.Target, slow bool) *conformance.World {
	nodes := map[string]*simdisk.Node{}
	for _, n := range []string{"a", "b", "c"} {
		nodes[n] = target.Node(n)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return &conformance.World{
		Disk: disk,
		Node: func(n string) shared.Disks { return nodes[n] },
		Settled: func() {
			for n := range nodes {
				if slow {
					must(target.Finish(n, true))
				}
			}
		},
		Open: func(n string) conformance.Device {
			d, err := nodes[n].Open(lineage.Epoch{})
			must(err)
			return conformance.Device{Write: d.Write, Buffer: d.Buffer, Close: d.Close}
		},
		WriteBack: func(n string) error { return nodes[n].WriteBack() },
		Relogin:   func(n string) { must(target.Relogin(n)) },
		Restart:   func() { must(target.Restart()) },
		Written: func() (out []string) {
			log, err := target.Log()
			must(err)
			for _, w := range log {
				out = append(out, w.Data)
			}
			return out
		},
		Misplace: func() { must(target.Replace("wwn:2")) },
	}
}

func holding(t *testing.T, n *simdisk.Node, expect ownership.RawKey, number uint64, name string) ownership.RawKey {
	t.Helper()
	k := ownership.Key{Node: name, Epoch: lineage.Epoch{Number: number, ID: "id"}}.Raw()
	if err := errors.Join(n.Attach(t.Context(), disk), n.Register(t.Context(), disk, k, shared.Idle), n.Reserve(t.Context(), disk, expect, k)); err != nil {
		t.Fatal(err)
	}
	return k
}

func TestALateCommandIsJudgedWhenItIsExecuted(t *testing.T) {
	target := simdisk.New(config())
	a, b := target.Node("a"), target.Node("b")
	k := holding(t, a, 0, 1, "a")
	d, err := a.Open(lineage.Epoch{Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w, err := d.Send("late")
	if err != nil {
		t.Fatal(err)
	}
	holding(t, b, k, 2, "b")
	if err := a.Land(w); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("a command of the old holder: %v", err)
	}
	if log, err := target.Log(); err != nil || len(log) > 0 {
		t.Errorf("executed: %v, %v", log, err)
	}
}

func TestAnAnswerThatIsLostLeavesTheEffect(t *testing.T) {
	target := simdisk.New(config())
	a := target.Node("a")
	lost := errors.New("lost")
	for _, done := range []bool{false, true} {
		a.Fail(func(call string, after bool) error {
			if call == "attach" && after == done {
				return lost
			}
			return nil
		})
		if err := a.Attach(t.Context(), disk); !errors.Is(err, lost) {
			t.Errorf("attached: %v", err)
		}
		if v, err := a.Look(t.Context(), disk); err != nil || (v.Link == ownership.Attached) != done {
			t.Errorf("seen %v, %v", v.Link, err)
		}
	}
}

// writer is a process of one node: it takes the disk from whichever node holds it, writes and ends in
// the middle of its work.
func writer(dir, node string) error {
	target, err := simdisk.Open(dir, config())
	if err != nil {
		return err
	}
	n, ctx := target.Node(node), contextOfProcess()
	if err := n.Attach(ctx, disk); err != nil {
		return err
	}
	for range 20 {
		v, err := n.Look(ctx, disk)
		if err != nil {
			return err
		}
		e := lineage.Epoch{Number: v.Holder.Number() + 1, ID: node}
		k := ownership.Key{Node: node, Epoch: e}.Raw()
		if err := n.Register(ctx, disk, k, shared.Idle); err != nil {
			return err
		}
		if v, err = n.Look(ctx, disk); err != nil {
			return err
		}
		if v.Holder != k && v.Holder.Number() >= e.Number {
			continue // the other process was faster
		}
		switch err := n.Reserve(ctx, disk, v.Holder, k); {
		case errors.Is(err, provision.ErrConflict):
			continue // so it was here
		case err != nil:
			return err
		}
		d, err := n.Open(e)
		if err != nil {
			return err
		}
		for i := range 5 {
			if err := d.Write(fmt.Sprint(i)); err != nil {
				break // shut out
			}
		}
		d.Close()
	}
	return nil
}

func TestProcessesShareADiskAndTheLogNeverGoesBack(t *testing.T) {
	dir := t.TempDir()
	target, err := simdisk.Open(dir, config())
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for _, node := range []string{"a", "b"} {
		running.Go(func() {
			_, err := run.Exec{}.Change(run.Command{Program: os.Args[0], Env: []string{"BERTH_SIMDISK=" + dir, "BERTH_NODE=" + node}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	log, err := target.Log()
	if err != nil || len(log) == 0 {
		t.Fatalf("the log has %d writes: %v", len(log), err)
	}
	for i := 1; i < len(log); i++ {
		if log[i].Epoch.Number < log[i-1].Epoch.Number {
			t.Errorf("a write of epoch %v follows one of %v", log[i].Epoch, log[i-1].Epoch)
		}
	}
}

func TestAWriteThatItsProcessDidNotFinishIsNotInTheLog(t *testing.T) {
	dir := t.TempDir()
	target, err := simdisk.Open(dir, config())
	if err != nil {
		t.Fatal(err)
	}
	a := target.Node("a")
	holding(t, a, 0, 1, "a")
	d, err := a.Open(lineage.Epoch{Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	torn := func() {
		f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(`{"Node":"a","Da`); err != nil {
			t.Fatal(err)
		}
	}
	torn()
	if err := d.Write("1"); err != nil {
		t.Fatal(err)
	}
	torn()
	if log, err := target.Log(); err != nil || len(log) != 1 || log[0].Data != "1" {
		t.Errorf("the log is %v, %v", log, err)
	}
}
