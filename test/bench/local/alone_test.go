package main

import (
	"testing"

	"berth.dev/berth/internal/run"
)

func TestBerthSeesNothingOfTheOtherSidesZpools(t *testing.T) {
	d, host, p := playedZpools(t)
	for _, c := range []run.Command{
		zfsCommand("create", "-V", "16777216", "-b", "16384", "bench-bare/pvc-bare-1"),
		zfsCommand("create", "-V", "16777216", "-b", "16384", "bench-bare/pvc-bare-2"),
		zfsCommand("create", "bench-bare/files"),
		zfsCommand("snapshot", "bench-bare/pvc-bare-1@now"),
		zfsCommand("clone", "bench-bare/pvc-bare-1@now", "bench-bare/pvc-bare-3"),
		zfsCommand("destroy", "bench-bare/pvc-bare-2"),
	} {
		if _, err := d.bare.Change(c); err != nil {
			t.Fatalf("%v: %v", c.Args, err)
		}
	}
	devices := alone{host, poolName(socketSide), d.bare}
	if n, err := devices.Zvols(); err != nil || n != 0 {
		t.Errorf("it sees %d zvols, %v", n, err)
	}
	pools, err := p.Report(t.Context())
	if err != nil || len(pools) != 1 || pools[0].Name != "zfs:bench-socket" {
		t.Errorf("it reports %+v, %v", pools, err)
	}
	if n, err := host.Zvols(); err != nil || n != 2 {
		t.Errorf("there are %d zvols, %v", n, err)
	}
}
