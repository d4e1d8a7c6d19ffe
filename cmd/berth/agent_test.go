package main

import (
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
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
		"volumes with copies": {flags: []string{"--copies", "--guard-socket=/run/guard.sock", "--peer-address=:1", "--peer-pod-ip=10.0.0.1"},
			socket: "/kubelet/plugins/local.berth.dev/csi.sock"},
		"a rate of copies without copies":              {flags: []string{"--copies-rate=50Mi"}, refusal: "--copies-rate is for an agent with --copies"},
		"volumes with copies without a guard":          {flags: []string{"--copies", "--peer-address=:1", "--peer-pod-ip=10.0.0.1"}, refusal: "--copies needs --guard-socket"},
		"volumes with copies that no node can ask for": {flags: []string{"--copies", "--guard-socket=/run/guard.sock"}, refusal: "--copies needs --guard-socket and --peer-address"},
		"copies of shared disks":                       {flags: []string{"--driver=disk", "--copies", "--guard-socket=/g", "--peer-address=:1"}, refusal: "--copies is for --driver local"},
		"a driver that does not exist":                 {flags: []string{"--driver=tape"}, refusal: "use local or disk"},
		"shared disks without a guard":                 {flags: []string{"--driver=disk"}, refusal: "needs --guard-socket"},
		"simulated disks of the local driver":          {flags: []string{"--simulated-disks=/srv/disks"}, refusal: "is for --driver disk"},
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

func TestAnAgentWithoutCopiesDoesNotSpeakForEpochsThatItsNodeKeeps(t *testing.T) {
	kept := journal.Journal{Files: journal.Dir(filepath.Join(t.TempDir(), "epochs"))}
	if !speaksForNone(kept) {
		t.Error("the guard gets no word on a node that never had volumes with copies")
	}
	if err := kept.Store(journal.Kept{Volume: v1alpha1.VolumeName("a")}); err != nil {
		t.Fatal(err)
	}
	if speaksForNone(kept) {
		t.Error("the guard is told that all epochs are closed by an agent that does not know them")
	}
}
