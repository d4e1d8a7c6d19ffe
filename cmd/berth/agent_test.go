package main

import (
	"strings"
	"testing"
)

func TestTheFlagsOfAnAgentFitTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		flags   []string
		refusal string
		socket  string
	}{
		"the local driver by default": {socket: "/kubelet/plugins/local.berth.dev/csi.sock"},
		"shared disks":                {flags: []string{"--driver=disk", "--guard-socket=/run/guard.sock"}, socket: "/kubelet/plugins/disk.berth.dev/csi.sock"},
		"simulated disks": {flags: []string{"--driver=disk", "--guard-socket=/run/guard.sock", "--simulated-disks=/srv/disks"},
			socket: "/kubelet/plugins/disk.berth.dev/csi.sock"},
		"a driver that does not exist":        {flags: []string{"--driver=tape"}, refusal: "use local or disk"},
		"shared disks without a guard":        {flags: []string{"--driver=disk"}, refusal: "needs --guard-socket"},
		"simulated disks of the local driver": {flags: []string{"--simulated-disks=/srv/disks"}, refusal: "is for --driver disk"},
		"simulated disks at a relative path": {flags: []string{"--driver=disk", "--guard-socket=/g", "--simulated-disks=disks"},
			refusal: "not an absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			var f agentFlags
			flags := agentCommand(&f).Flags()
			if err := flags.Parse(append([]string{"--node-name=n1", "--kubelet-dir=/kubelet"}, tc.flags...)); err != nil {
				t.Fatal(err)
			}
			err := f.complete()
			if tc.refusal == "" && err != nil || tc.refusal != "" && (err == nil || !strings.Contains(err.Error(), tc.refusal)) {
				t.Errorf("got %v, want a refusal that says %q", err, tc.refusal)
			}
			if err == nil && f.csiSocket != tc.socket {
				t.Errorf("the socket is %s, want %s", f.csiSocket, tc.socket)
			}
		})
	}
}
