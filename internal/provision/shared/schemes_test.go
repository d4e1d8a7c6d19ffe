package shared_test

import (
	"context"
	"errors"
	"slices"
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
		for call, err := range all(t, has, d) {
			if !errors.Is(err, provision.ErrUnsupported) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s of %q: %v, want ErrUnsupported that says %q", call, handle, err, says)
			}
		}
	}
}

// broken are disks that promise something, and fail at all.
type broken struct {
	promises shared.Capabilities
	err      error
}

func (b broken) Capabilities() shared.Capabilities { return b.promises }

func (b broken) Look(context.Context, shared.Disk) (shared.View, error) { return shared.View{}, b.err }

func (b broken) Attach(context.Context, shared.Disk) error { return b.err }

func (b broken) Detach(context.Context, shared.Disk) error { return b.err }

func (b broken) Flush(context.Context, shared.Disk) error { return b.err }

func (b broken) Register(context.Context, shared.Disk, ownership.RawKey, shared.Use) error {
	return b.err
}

func (b broken) Reserve(context.Context, shared.Disk, ownership.RawKey, ownership.RawKey) error {
	return b.err
}

func TestWhatAProvisionerCannotDoIsNotTakenForDone(t *testing.T) {
	s, d := shared.Schemes(map[string]shared.Disks{"sim": broken{err: provision.ErrUnavailable}}), shared.Disk{Volume: "vol", Handle: "sim:///a"}
	for call, err := range all(t, s, d) {
		if !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", call, err)
		}
	}
}

// all calls whatever can fail.
func all(t *testing.T, of shared.Finder, d shared.Disk) map[string]error {
	calls := map[string]error{
		"attach": of.Attach(t.Context(), d), "detach": of.Detach(t.Context(), d), "register": of.Register(t.Context(), d, 1, shared.Idle),
		"reserve": of.Reserve(t.Context(), d, 0, 1), "flush": of.Flush(t.Context(), d),
	}
	_, calls["look"] = of.Look(t.Context(), d)
	_, calls["glance"] = of.Glance(t.Context(), d)
	return calls
}

// glancer are disks of which a glance is not a look.
type glancer struct{ broken }

func (glancer) Glance(context.Context, shared.Disk) (shared.View, error) {
	return shared.View{Problem: "glanced"}, nil
}

func TestAGlanceIsALookUnlessTheProvisionerHasSomethingCheaper(t *testing.T) {
	s := shared.Schemes(map[string]shared.Disks{"dear": glancer{broken{err: provision.ErrUnavailable}}, "cheap": broken{err: provision.ErrConflict}})
	if v, err := shared.Glance(t.Context(), s, shared.Disk{Handle: "dear:///a"}); err != nil || v.Problem != "glanced" {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := shared.Glance(t.Context(), s, shared.Disk{Handle: "cheap:///a"}); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("a look fails with %v", err)
	}
}

func TestProvisionersTogetherPromiseOnlyThatWhichEachPromises(t *testing.T) {
	both := []shared.Type{shared.WriteExclusive, shared.WriteExclusiveRegistrantsOnly}
	one := both[:1]
	for range 20 { // a map has no order
		for i, tc := range []struct{ a, b, want shared.Capabilities }{
			{shared.Capabilities{Abort: true, Persistent: true, Types: both}, shared.Capabilities{Abort: true, Persistent: true, Types: both}, shared.Capabilities{Abort: true, Persistent: true, Types: both}},
			{shared.Capabilities{Abort: true, Types: both}, shared.Capabilities{Persistent: true, Types: one}, shared.Capabilities{Types: one}},
			{shared.Capabilities{Persistent: true, Types: one}, shared.Capabilities{Abort: true, Types: both}, shared.Capabilities{Types: one}},
		} {
			got := shared.Schemes(map[string]shared.Disks{"a": broken{promises: tc.a}, "b": broken{promises: tc.b}}).Capabilities()
			if got.Abort != tc.want.Abort || got.Persistent != tc.want.Persistent || !slices.Equal(got.Types, tc.want.Types) {
				t.Errorf("%d: they promise %+v, want %+v", i, got, tc.want)
			}
		}
	}
}
