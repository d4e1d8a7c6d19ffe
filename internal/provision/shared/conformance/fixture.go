package conformance

import (
	"errors"
	"reflect"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
)

type fixture struct {
	*World
	t *testing.T
}

// key of a node in the epoch of a number.
func key(node string, number uint64) ownership.RawKey {
	return ownership.Key{Node: node, Epoch: lineage.Epoch{Number: number, ID: "id"}}.Raw()
}

// leftByWipe is the key that a wipe of node a has left.
var leftByWipe = ownership.LeftByWipe(ownership.Key{Node: "a", Epoch: lineage.Epoch{ID: "wipe"}})

// unregister ends the registrations of nodes.
func (f *fixture) unregister(nodes ...string) {
	f.t.Helper()
	for _, node := range nodes {
		f.ok(f.Node(node).Register(f.t.Context(), f.Disk, 0, shared.Idle))
	}
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) is(err, want error) {
	f.t.Helper()
	if !errors.Is(err, want) {
		f.t.Errorf("got %v, want %v", err, want)
	}
}

func (f *fixture) attach(nodes ...string) {
	f.t.Helper()
	for _, n := range nodes {
		f.ok(f.Node(n).Attach(f.t.Context(), f.Disk))
		f.Settled()
		v := f.look(n)
		f.looks(n, ownership.Disk{Link: ownership.Attached, Holder: v.Holder, Registrants: v.Registrants, Keys: v.Keys})
	}
}

func (f *fixture) look(node string) shared.View {
	f.t.Helper()
	glance, err := shared.Glance(f.t.Context(), f.Node(node), f.Disk)
	f.ok(err)
	v, err := f.Node(node).Look(f.t.Context(), f.Disk)
	f.ok(err)
	if !reflect.DeepEqual(glance, v) {
		f.t.Errorf("node %s sees %+v at a glance, and then %+v", node, glance, v)
	}
	if (v.Link == ownership.Attached) != (v.Content.Source != "") {
		f.t.Errorf("node %s sees the disk %v, with the device %q", node, v.Link, v.Content.Source)
	}
	return v
}

// looks compares what a node sees. Which keys are registered is told for certain only of a disk that several nodes write.
func (f *fixture) looks(node string, want ownership.Disk) {
	f.t.Helper()
	v := f.look(node)
	if !f.Disk.ManyWriters {
		v.Keys, want.Keys = nil, nil
	}
	if !reflect.DeepEqual(v.Disk, want) {
		f.t.Errorf("node %s sees %+v, want %+v", node, v.Disk, want)
	}
}

// take registers a node and takes the reservation from a holder.
func (f *fixture) take(node string, expect, k ownership.RawKey) {
	f.t.Helper()
	f.ok(f.Node(node).Register(f.t.Context(), f.Disk, k, shared.Idle))
	f.ok(f.Node(node).Reserve(f.t.Context(), f.Disk, expect, k))
	f.looks(node, ownership.Disk{Link: ownership.Attached, Registered: k, Holder: k, Holding: true})
}

// write writes a block on a node and tells whether the disk took it.
func (f *fixture) write(node, block string) bool {
	f.t.Helper()
	d := f.Open(node)
	defer d.Close()
	return d.Write(block) == nil
}

func (f *fixture) wrote(want ...string) {
	f.t.Helper()
	got := f.Written()
	if len(got) != len(want) {
		f.t.Fatalf("the disk executed %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			f.t.Fatalf("the disk executed %v, want %v", got, want)
		}
	}
}
