package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/lab/internal/cluster"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/san"
)

func TestStatusIsATable(t *testing.T) {
	var out bytes.Buffer
	err := printStatus(&out, cluster.Status{
		Processes: []cluster.ProcessStatus{{Name: "etcd", PID: 42, Running: true, Log: "/log/etcd.log"}, {Name: "kube-scheduler", Log: "/log/s.log"}},
		Nodes: []cluster.NodeStatus{
			{Name: "node1", Power: "on", Ready: "True", Disks: []cluster.DiskStatus{{Name: "disk1", Size: 10 << 30}}},
			{Name: "node2", Power: "off", Cut: true},
			{Name: "node3", Power: "paused", Lost: []network.Part{network.API, network.SAN}, Link: network.Link{Delay: 20 * time.Millisecond, Loss: 1}},
		},
		SAN: &cluster.SANStatus{
			Kind: "lio", Persist: true, Power: "on", Portal: "10.77.0.2:3260", Target: "iqn.x:san", Latency: 5 * time.Millisecond,
			LUNs: []san.LUN{{Number: 1, Size: 1 << 30, File: "/san/lun1.raw"}},
		},
		Problem: "the API server does not answer",
	})
	want := `PROCESS          STATE     PID   LOG
etcd             running   42    /log/etcd.log
kube-scheduler   ended     -     /log/s.log

NODE    POWER    NETWORK                                          READY   DISKS
node1   on       connected                                        True    disk1(10G)
node2   off      cut                                              -       -
node3   paused   cut from api, cut from san, delay 20ms loss 1%   -       -

SAN lio is on at 10.77.0.2:3260 as iqn.x:san; reservations survive a restart, latency 5ms
LUN   SIZE   FILE
1     1G     /san/lun1.raw

the API server does not answer
`
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
