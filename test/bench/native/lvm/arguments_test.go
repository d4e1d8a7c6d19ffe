package main

import (
	"slices"
	"testing"
)

func TestACommandIsTakenApartAsBerthWritesIt(t *testing.T) {
	a := parse([]string{"--config", "report{}", "--yes", "--size", "4194305b", "--name", "pvc-1", "--deltag", "c", "--addtag", "a=1", "--addtag", "b", "vg0"})
	if operand, err := a.operand(); err != nil || operand != "vg0" {
		t.Errorf("operand is %q, %v", operand, err)
	}
	if !slices.Equal(a.tags, []string{"a=1", "b"}) || !slices.Equal(a.gone, []string{"c"}) || a.flags["--name"] != "pvc-1" {
		t.Errorf("tags are %q, name is %q", a.tags, a.flags["--name"])
	}
	if n, err := a.extents(); err != nil || n != 2 {
		t.Errorf("one byte more than an extent takes %d, %v", n, err)
	}
}

func TestAnInvalidSizeIsRefused(t *testing.T) {
	for _, size := range []string{"", "b", "-4b", "1g", "0b"} {
		if n, err := parse([]string{"--size", size}).extents(); err == nil {
			t.Errorf("size %q was taken for %d extents", size, n)
		}
	}
}

func TestAVolumeIsNamedWithItsGroup(t *testing.T) {
	if group, name, err := volume("vg0/pvc-1"); err != nil || group != "vg0" || name != "pvc-1" {
		t.Errorf("vg0/pvc-1 is %q, %q, %v", group, name, err)
	}
	for _, operand := range []string{"vg0", "/x", "vg0/", "a/b/c"} {
		if _, _, err := volume(operand); err == nil {
			t.Errorf("%q was accepted", operand)
		}
	}
	if got := mapped(&group{Name: "vg-0"}, "pvc-1"); got != "vg--0-pvc--1" {
		t.Errorf("the device mapper's name is %q", got)
	}
}
