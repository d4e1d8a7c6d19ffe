package main

import "testing"

func TestTheCgroupOfProcessorsIsFoundAmongOthers(t *testing.T) {
	got, err := parseCPUGroup("9:name=systemd:/a\n2:cpuacct:/b\n1:cpu:/lab/node1\n0::/c\n")
	if err != nil || got != "/lab/node1" {
		t.Errorf("found %q, %v", got, err)
	}
	if got, err := parseCPUGroup("0::/c\n"); err == nil {
		t.Errorf("found %q where there is none", got)
	}
}
