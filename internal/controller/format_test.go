package controller_test

import (
	"testing"

	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/provision"
)

func TestAVolumeSaysWithWhatOptionsItsFilesystemIsMade(t *testing.T) {
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

func TestNoOptionsAreLostOnAnAgentThatDoesNotKnowThem(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	n.SetOld(t)
	r := c.request(n)
	r.MkfsOptions = "-I 512"
	_, err := p.Volumes.Create(within(t), r)
	wantError(t, err, provision.ErrUnavailable, "node "+n.Name+": its berth-agent does not say")
	if left := controllertest.Volume(t, c.Environment, r.Name); left != nil {
		t.Errorf("a Volume was made: %+v", left.Spec)
	}
	mustCreate(t, p, c.request(n)) // one without options
}
