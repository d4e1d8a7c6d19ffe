package main

import (
	"os"
	"strings"
	"testing"
)

func TestACheckLeavesPoolsAloneThatAnotherProcessTends(t *testing.T) {
	machine := t.TempDir()
	free := func(when string) {
		t.Helper()
		if err := untended(machine); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	free("nobody tends them")
	var all []*tending
	for range 2 {
		one, err := tendPools(machine)
		if err != nil {
			t.Fatal(err)
		}
		if err := untended(machine); err == nil || !strings.Contains(err.Error(), "--poold unix:///run/berth/poold.sock") {
			t.Errorf("the check is told %v", err)
		}
		all = append(all, one)
	}
	for _, one := range all {
		if err := one.end(); err != nil {
			t.Fatal(err)
		}
	}
	free("they have ended")
	if err := untended(machine + "/none"); !os.IsNotExist(err) {
		t.Errorf("there is no such directory: %v", err)
	}
}
