package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/lab/internal/cluster"
)

func TestStatusIsATable(t *testing.T) {
	var out bytes.Buffer
	err := printStatus(&out, cluster.Status{
		Processes: []cluster.ProcessStatus{{Name: "etcd", PID: 42, Running: true, Log: "/log/etcd.log"}, {Name: "kube-scheduler", Log: "/log/s.log"}},
		Nodes: []cluster.NodeStatus{
			{Name: "node1", Power: "on", Ready: "True", Disks: []cluster.DiskStatus{{Name: "disk1", Size: 10 << 30}}},
			{Name: "node2", Power: "off", Cut: true},
		},
		Problem: "the API server does not answer",
	})
	want := `PROCESS          STATE     PID   LOG
etcd             running   42    /log/etcd.log
kube-scheduler   ended     -     /log/s.log

NODE    POWER   NETWORK     READY   DISKS
node1   on      connected   True    disk1(10G)
node2   off     cut         -       -

the API server does not answer
`
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
