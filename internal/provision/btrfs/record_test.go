package btrfs

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

func TestARecordIsReadAsItWasWrittenAndInItsOwnPlaceAlone(t *testing.T) {
	want := record{
		ID: "pvc-1", Subvolume: kernel.Subvolume{ID: 256, UUID: "a"}, Size: unit, Filesystem: "btrfs", Inline: provision.Inline{PodUID: "p", Name: "n"},
		Source: provision.Source{Volume: "pvc-0"}, Labels: map[string]string{"claim": "data"}, Volume: "pvc-2", Taken: time.Unix(1e9, 0).UTC(), Pins: map[uint64]int64{255: 8},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := parse(text, "pvc-1"); !ok || !cmp.Equal(got, want) {
		t.Errorf("it is %s, %v", cmp.Diff(want, got), ok)
	}
	for name, text := range map[string]string{
		"of another name": string(text), "no record": "", "cut off": string(text[:len(text)-1]), "of no size": `{"ID":"pvc-3"}`, "of a negative size": `{"ID":"pvc-3","Size":-1}`,
	} {
		if r, ok := parse([]byte(text), "pvc-3"); ok {
			t.Errorf("%s: it is read as %+v", name, r)
		}
	}
}

func TestAUUIDSaysThatBerthMadeAFilesystem(t *testing.T) {
	fsid := newUUID("data")
	if !ours(fsid, "data") {
		t.Errorf("%s is not ours", fsid)
	}
	changed := []byte(fsid)
	changed[len(changed)-1] ^= 1
	for name, tc := range map[string]struct{ fsid, label string }{
		"of another label": {fsid, "more"}, "changed": {string(changed), "data"}, "of others": {"c192c67a-1d4d-4197-861f-93c5285bd767", "data"}, "none": {"", "data"},
	} {
		if ours(tc.fsid, tc.label) {
			t.Errorf("%s: %q is ours", name, tc.fsid)
		}
	}
	if newUUID("data") == fsid {
		t.Error("two filesystems have one UUID")
	}
}
