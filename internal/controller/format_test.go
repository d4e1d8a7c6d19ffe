package controller_test

import (
	"testing"

	"berth.dev/berth/internal/controller/controllertest"
)

func TestAVolumeNamesTheMkfsOptionsOfItsFilesystem(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)
	r.MkfsOptions = "-I 512"
	if v := mustCreate(t, p, r); v.MkfsOptions != r.MkfsOptions {
		t.Errorf("made with %q", v.MkfsOptions)
	}
	if v := mustCreate(t, p, r); v.MkfsOptions != r.MkfsOptions {
		t.Errorf("the second time with %q", v.MkfsOptions)
	}
}
