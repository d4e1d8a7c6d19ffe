package shared_test

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

func disks(t *testing.T) shared.Finder {
	t.Helper()
	node := func(identity provision.Identity, persistent bool) shared.Disks {
		return simdisk.New(simdisk.Config{Identity: identity, Shares: 1, Persistent: persistent}).Node("a")
	}
	return shared.Schemes(map[string]shared.Disks{"sim": node("of-sim", true), "iscsi": node("of-iscsi", false)})
}

func TestTheSchemeOfAHandleNamesItsProvisioner(t *testing.T) {
	s := disks(t)
	for handle, identity := range map[string]provision.Identity{"sim:///a": "of-sim", "iscsi://portal/iqn/1": "of-iscsi"} {
		d := shared.Disk{Volume: "vol", Handle: handle, Identity: identity}
		if err := s.Attach(t.Context(), d); err != nil {
			t.Errorf("attaching %s: %v", handle, err)
		}
		if v, err := s.Look(t.Context(), d); err != nil || v.Link != ownership.Attached {
			t.Errorf("%s is %v, %v", handle, v.Link, err)
		}
	}
}

func TestAnUnknownSchemeIsRefusedAndTheKnownOnesAreNamed(t *testing.T) {
	none := "sim:///a"
	for _, handle := range []string{"nvme://a", "sim", "", none} {
		has, says := disks(t), "it has: iscsi, sim"
		if handle == none {
			has, says = shared.Schemes(nil), "it has: none"
		}
		d := shared.Disk{Volume: "vol", Handle: handle}
		calls := map[string]error{
			"attach": has.Attach(t.Context(), d), "detach": has.Detach(t.Context(), d), "register": has.Register(t.Context(), d, 1, shared.Idle),
			"reserve": has.Reserve(t.Context(), d, 0, 1), "flush": has.Flush(t.Context(), d), "clear": has.Clear(t.Context(), d),
		}
		_, calls["look"] = has.Look(t.Context(), d)
		for call, err := range calls {
			if !errors.Is(err, provision.ErrUnsupported) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s of %q: %v, want ErrUnsupported that says %q", call, handle, err, says)
			}
		}
	}
}

func TestProvisionersTogetherPromiseOnlyThatWhichEachPromises(t *testing.T) {
	c := disks(t).Capabilities()
	if !c.Abort || c.Persistent || len(c.Types) != 1 || c.Types[0] != shared.WriteExclusive {
		t.Errorf("they promise %+v", c)
	}
}
