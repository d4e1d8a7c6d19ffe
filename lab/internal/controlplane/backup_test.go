package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/process"
	"berth.dev/berth/lab/internal/progress"
)

// ended is the journal of a control plane that does not run.
type ended struct{}

func (ended) Process(string) (process.Record, bool) { return process.Record{}, false }
func (ended) RecordProcess(process.Record) error    { return errors.New("nothing may be started") }

func TestTheRestoredMemberIsTheOneThatIsStarted(t *testing.T) {
	c := testConfig(t)
	started := c.etcdArgs()
	for _, a := range c.restoreArgs(Restoration{File: "/backup"}) {
		name, _, _ := strings.Cut(a, "=")
		isMembers := slices.ContainsFunc(started, func(s string) bool { return strings.HasPrefix(s, name+"=") })
		if isMembers && name != "--data-dir" && !slices.Contains(started, a) {
			t.Errorf("the data is made for %s, etcd is started with %v", a, started)
		}
	}
	for _, name := range []string{"--name=", "--initial-cluster=", "--initial-advertise-peer-urls="} {
		if !slices.ContainsFunc(c.restoreArgs(Restoration{}), func(a string) bool { return strings.HasPrefix(a, name) }) {
			t.Errorf("the data is made without %s", name)
		}
	}
}

func TestRevisionsGoOnUnlessTheyAreToGoBack(t *testing.T) {
	c := testConfig(t)
	for _, r := range []Restoration{{BackInTime: false}, {BackInTime: true}} {
		args := c.restoreArgs(r)
		if got := slices.Contains(args, bump) && slices.Contains(args, "--mark-compacted"); got == r.BackInTime {
			t.Errorf("%+v gives %v", r, args)
		}
	}
}

func TestRestoredDataTakesThePlaceOfTheOld(t *testing.T) {
	c := testConfig(t)
	c.Dir = t.TempDir()
	for dir, content := range map[string]string{c.data(): "old", c.restoredData(): "new"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "db"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.exchangeData(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(c.data(), "db")); err != nil || string(got) != "new" {
		t.Errorf("etcd finds %q, %v", got, err)
	}
	if left, err := os.ReadDir(c.Dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDataThatIsMissingIsNotExchanged(t *testing.T) {
	c := testConfig(t)
	c.Dir = t.TempDir()
	if err := os.Mkdir(c.restoredData(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.exchangeData(); err == nil {
		t.Error("data took a place that was not there")
	}
	if _, err := os.Stat(c.restoredData()); err != nil {
		t.Error(err)
	}
}

func TestABackupOfAStoppedControlPlaneSaysHowToStartIt(t *testing.T) {
	err := Backup(t.Context(), testConfig(t), ended{}, "/backup")
	if err == nil || !strings.Contains(err.Error(), "lab up") {
		t.Errorf("error is %v", err)
	}
}

// refuses makes a stand-in for etcdutl that refuses every file.
func refuses(t *testing.T) (tools string) {
	t.Helper()
	tools = t.TempDir()
	if err := os.Symlink("/bin/false", filepath.Join(tools, "etcdutl")); err != nil {
		t.Fatal(err)
	}
	return tools
}

func TestAFileThatIsNoBackupChangesNothing(t *testing.T) {
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(damaged, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{damaged: "no complete backup", "/nowhere/backup": "no such file"} {
		c := testConfig(t)
		c.Dir, c.EtcdTools = t.TempDir(), refuses(t)
		if err := os.Mkdir(c.data(), 0o700); err != nil {
			t.Fatal(err)
		}
		err := Restore(t.Context(), c, ended{}, Restoration{File: file}, progress.Discard.Step(""))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: error is %v, want %q", file, err, want)
		}
		if _, err := os.Stat(c.data()); err != nil {
			t.Error(err)
		}
	}
}
