package iscsi_test

import (
	"reflect"
	"testing"

	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/conformance"
)

const (
	unitName = "6001405a1b2c3d4e"
	handle   = "iscsi://10.0.0.5/iqn.2026-01.com.example:array/1"
)

var disk = shared.Disk{Volume: "pvc-1", Handle: handle, Identity: "naa." + unitName}

func TestConformanceOnAPlayedTarget(t *testing.T) {
	for name, o := range map[string]iscsitest.Options{
		"that keeps its reservations":                        {},
		"that forgets them, and aborts nothing, as tgt does": {Forgets: true, NoAbort: true},
		"that compares initiators, as LIO does":              {ByInitiator: true},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(*testing.T) *conformance.World {
				o.Shares, o.Name = 2, unitName
				return world(iscsitest.New(o))
			})
		})
	}
}

func world(target *iscsitest.Target) *conformance.World {
	nodes, disks := map[string]*iscsitest.Node{}, map[string]*iscsi.Disks{}
	for _, name := range []string{"a", "b", "c"} {
		n := target.Node(name)
		nodes[name], disks[name] = n, iscsi.New(config(n, shared.Capabilities{Abort: !target.NoAbort, Persistent: !target.Forgets}))
	}
	return &conformance.World{
		Disk: disk,
		Node: func(name string) shared.Disks { return disks[name] },
		Settled: func() {
			for _, d := range disks {
				d.Wait()
			}
		},
		Open: func(name string) conformance.Device {
			n := nodes[name]
			return conformance.Device{Write: n.Write, Buffer: n.Buffer, Close: n.Holds()}
		},
		WriteBack: func(name string) error { return nodes[name].WriteBack() },
		Relogin:   target.Relogin,
		Restart:   target.Restart,
		Written:   target.Log,
		Misplace:  target.Misplace,
		Lenient:   target.ByInitiator,
	}
}

func same(a, b shared.View) bool { return reflect.DeepEqual(a, b) }

func config(n *iscsitest.Node, promises shared.Capabilities) iscsi.Config {
	return iscsi.Config{Runner: n, Kernel: n, Used: n.Used, Promises: promises}
}
