package lvm_test

import (
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// lun is one of a shared disk that this node has attached, and that no pod of this node has at the moment: it stands
// by, or its pod has ended less than five minutes ago.
var lun = group.Block{Remote: true}

func TestAVolumeGroupThatAPodWroteOnASharedDiskIsNotTheNodes(t *testing.T) {
	for name, named := range map[string]string{"by the name of the node's group": vg.Name, "by the name of a group that this node lacks": "vg-other"} {
		for how, blind := range map[string]bool{"LVM obeys the filter": false, "LVM ignores the filter": true} {
			t.Run(name+", "+how, inBubble(func(t *testing.T) {
				host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
				_, c := counted(host)
				p, stop := start(t, c)
				create(t, p, request("pvc-1", 8))
				host.Attach("sdb", lun)
				blindHost(host, blind)
				putGroup(host, "tenants", named, "theirs", "/dev/sdb", "pvc-theirs")
				stop()
				p, _ = start(t, c)
				if fine, troubled := report(t, p); !slices.Equal(fine, []string{vg.Name}) || len(troubled) > 0 {
					t.Errorf("reported %v and %v, want %s alone", fine, troubled, vg.Name)
				}
				if named != vg.Name {
					r := request("pvc-2", 8)
					r.Pool = provision.PoolRef{Type: provision.LVM, Name: named}
					if v, err := p.Create(t.Context(), r); err == nil {
						t.Errorf("the claim of another tenant was carved on the tenant's disk: %s", v.Content.Source)
					}
				} else if !blind { // as long as LVM sees both groups it changes neither
					if err := p.Delete(t.Context(), "pvc-1"); err != nil {
						t.Errorf("a volume of the node cannot be deleted: %v", err)
					}
				}
				if ids, seqno := whatIs(host, "tenants"); len(ids) != 1 || seqno != 50 {
					t.Errorf("the tenant's group was changed: %v, %d", ids, seqno)
				}
			}))
		}
	}
}

// An administrator has listed the disk, by what the target says of it.
func TestAGroupOnADiskOfANetworkIsTheNodesIfLVMReadsListedDisksAlone(t *testing.T) {
	for name, listed := range map[string]bool{"with a devices file": true, "without one": false} {
		t.Run(name, func(t *testing.T) {
			host := lvmtest.NewHost(nil)
			host.Settings.DevicesFile = listed
			host.Attach("sdb", lun)
			putGroup(host, "vg-san", "vg-san", "u", "/dev/sdb", "pvc-1")
			_, c := counted(host)
			p, _ := start(t, c)
			if fine, troubled := report(t, p); slices.Contains(fine, "vg-san") != listed || len(troubled) > 0 {
				t.Errorf("reported %v and %v", fine, troubled)
			}
			if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 8 * unit}); (err == nil) != listed {
				t.Errorf("expanding: %v", err)
			}
		})
	}
}

func TestANodeSaysThatItsLVMReadsDisksOfANetwork(t *testing.T) {
	const byID = "/dev/disk/by-id/wwn-0x6001405beab00010"
	for name, tc := range map[string]struct {
		groups   map[string]int64
		settings lvmtest.Settings
		known    group.Known
		warned   bool
	}{
		"by default":                                     {groups: map[string]int64{vg.Name: 100}, warned: true},
		"by default, on a node without a group":          {},
		"without a group, but a group is on such a disk": {known: group.Known{Member: true}, warned: true},
		"not if its filter accepts other disks alone":    {groups: map[string]int64{vg.Name: 100}, settings: lvmtest.Settings{GlobalFilter: []string{"a|^/dev/disk-|", "r|.*|"}}, known: group.Known{Links: []string{byID}, Member: true}},
		"but if its filter accepts the disk by a link":   {groups: map[string]int64{vg.Name: 100}, settings: lvmtest.Settings{GlobalFilter: []string{"a|^/dev/disk-|", "a|^" + byID + "$|", "r|.*|"}}, known: group.Known{Links: []string{byID}}, warned: true},
		"not if its filter rejects the disk by a link":   {groups: map[string]int64{vg.Name: 100}, settings: lvmtest.Settings{GlobalFilter: []string{"r|^/dev/loop|", "r|^/dev/disk/by-id/wwn-0x6001405|"}}, known: group.Known{Links: []string{byID}}},
		"not if it has a devices file":                   {groups: map[string]int64{vg.Name: 100}, settings: lvmtest.Settings{DevicesFile: true}, known: group.Known{Member: true}},
	} {
		t.Run(name, func(t *testing.T) {
			host := lvmtest.NewHost(tc.groups)
			host.Settings = tc.settings
			host.Attach("sdb", lun)
			host.Know("sdb", tc.known)
			_, c := counted(host)
			p, _ := start(t, c)
			report(t, p)
			warned := slices.ContainsFunc(p.Warnings(), func(w provision.Warning) bool {
				return w.Reason == v1alpha1.ReasonLVMReadsPodDevices && strings.Contains(w.Message, "/dev/sdb") && strings.Contains(w.Message, "devices file")
			})
			if warned != tc.warned {
				t.Errorf("warned of %v", p.Warnings())
			}
		})
	}
}
