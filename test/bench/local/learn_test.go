package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/run"
)

func TestAnOperationThatStartsNothingIsComparedWithNothing(t *testing.T) {
	d, _ := playedGroups(t)
	through := newBerth(socketSide, d.remote, thick)
	through.name = model
	if err := through.do(t.Context(), create, 0); err != nil {
		t.Fatal(err)
	}
	s := played(thick, uncopied, both, d)
	if _, err := s.learn(t.Context(), through, d.changes); err == nil || !strings.Contains(err.Error(), "create of volume 0 started no command") {
		t.Errorf("learnt from what is there already: %v", err)
	}
	if err := (bare{name: bareSide, runner: d.bare}).do(t.Context(), create, 0); err == nil {
		t.Error("an operation without commands was carried out")
	}
}

func TestACommandIsRetargetedWholly(t *testing.T) {
	c := run.Command{Operation: "lvcreate", Program: "lvm", Args: []string{
		"--name", cloneID(model, 0), "--addtag", "berth.dev/source=" + volumeID(model, 0), "--addtag", "berth.dev/label/claim=data-0", poolName(socketSide) + "/" + volumeID(model, 1)}}
	got := retarget(c, bareSide, 17)
	want := []string{"--name", "pvc-bare-17-clone", "--addtag", "berth.dev/source=pvc-bare-17", "--addtag", "berth.dev/label/claim=data-17", "bench-bare/pvc-bare-17"}
	if diff := cmp.Diff(want, got.Args); diff != "" {
		t.Error(diff)
	}
	if c.Args[1] != cloneID(model, 0) {
		t.Error("the template was changed")
	}
}
