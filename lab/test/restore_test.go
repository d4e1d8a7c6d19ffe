//go:build lab

package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/cluster"
)

// TestTheAPIServerGoesBackToABackup restores with and without BackInTime. It needs no nodes.
func TestTheAPIServerGoesBackToABackup(t *testing.T) {
	l := newLab(t)
	l.do("up", "--native", "--nodes", "0")
	backup := filepath.Join(t.TempDir(), "backup")
	l.kubectl("create", "configmap", "before")
	l.do("api", "backup", backup)
	for name, args := range map[string][]string{"revisions go on": nil, "back in time": {"--back-in-time"}} {
		t.Run(name, func(t *testing.T) {
			l := l.in(t)
			l.kubectl("create", "configmap", "after")
			l.kubectl("delete", "configmap", "before")
			highest := l.revision()
			l.do(append([]string{"api", "restore", backup}, args...)...)
			if got := l.kubectl("get", "configmaps", "before", "after", "--ignore-not-found", "-o", "name"); got != "configmap/before" {
				t.Errorf("after the restore there is %q, want what the backup has", got)
			}
			if went := l.revision() < highest; went != (args != nil) {
				t.Errorf("revision %d before, %d after", highest, l.revision())
			}
		})
	}
	t.Run("what is no backup changes nothing", func(t *testing.T) { testNoBackup(t, l.in(t), backup) })
}

// revision returns the API server's newest revision.
func (l *lab) revision() int {
	l.t.Helper()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(l.kubectl("get", "--raw", "/api/v1/namespaces/default/configmaps")), &list); err != nil {
		l.t.Fatal(err)
	}
	revision, err := strconv.Atoi(list.Metadata.ResourceVersion)
	if err != nil {
		l.t.Fatal(err)
	}
	return revision
}

func testNoBackup(t *testing.T, l *lab, backup string) {
	data, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged")
	data[len(data)/2] ^= 1
	if err := os.WriteFile(damaged, data, 0o600); err != nil {
		t.Fatal(err)
	}
	before := l.status().Processes
	for _, file := range []string{damaged, filepath.Join(t.TempDir(), "missing")} {
		_, stderr, code := l.run(t.Context(), nil, "api", "restore", file)
		if code == 0 || !strings.Contains(stderr, "nothing was changed") {
			t.Errorf("%s: exit code %d, %q", file, code, stderr)
		}
	}
	for i, p := range l.status().Processes {
		if p != (cluster.ProcessStatus{Name: p.Name, PID: before[i].PID, Running: true, Log: p.Log}) {
			t.Errorf("%+v was %+v", p, before[i])
		}
	}
}
