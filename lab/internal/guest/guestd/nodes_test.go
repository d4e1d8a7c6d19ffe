package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheDevicesOfModulesAreRead(t *testing.T) {
	got, err := parseStaticNodes(strings.NewReader(`# Device nodes to trigger on-demand module loading.
fuse fuse c10:229
dm_mod mapper/control c10:236
old old b7:0
`))
	want := []staticNode{
		{"fuse", syscall.S_IFCHR, 10, 229}, {"mapper/control", syscall.S_IFCHR, 10, 236}, {"old", syscall.S_IFBLK, 7, 0},
	}
	if err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(staticNode{})) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"fuse", "fuse fuse 10:229", "x ../../etc/x c1:1", "x x c1:999"} {
		if nodes, err := parseStaticNodes(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, nodes)
		}
	}
}
