package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/journal/journaltest"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

const id = "pvc-00000000-0000-0000-0000-000000000001"

func epoch(number uint64) lineage.Epoch { return lineage.Epoch{Number: number, ID: "id"} }

func kept(number uint64) journal.Kept {
	e := epoch(number)
	return journal.Kept{
		Volume: id, Disk: shared.Disk{Volume: id, Handle: "lun", Identity: "wwn:1"},
		Promise: ownership.Promise{Epoch: e, Primary: "a", Boot: "boot", Lineage: lineage.Lineage{{Epoch: e}}},
		Opened:  e, Closed: e, Flushed: e, Taken: journal.Taken{Epoch: e, Boot: "boot", Block: true},
	}
}

func loads(t *testing.T, j journal.Journal, want ...journal.Kept) journal.Kept {
	t.Helper()
	got, found, err := j.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		if diff := cmp.Diff(w, got); found && diff == "" {
			return got
		}
	}
	if len(want) > 0 {
		t.Errorf("kept is %+v, found %v", got, found)
	}
	return got
}

func TestAJournalKeepsWhatItStored(t *testing.T) {
	for name, files := range map[string]journal.Files{
		"in a directory": journal.Dir(filepath.Join(t.TempDir(), "new", "..", "journal")), "in memory": journaltest.New(),
	} {
		t.Run(name, func(t *testing.T) {
			j := journal.Journal{Files: files}
			if got, found, err := j.Load(id); err != nil || found || got.Volume != id {
				t.Errorf("at first: %+v, %v, %v", got, found, err)
			}
			for number := range uint64(3) {
				if err := j.Store(kept(number + 1)); err != nil {
					t.Fatal(err)
				}
				loads(t, j, kept(number+1))
			}
			if ids, err := j.Volumes(); err != nil || !cmp.Equal(ids, []string{id}) {
				t.Errorf("volumes: %v, %v", ids, err)
			}
		})
	}
}

// An agent before the field that says so wrote a journal without it, and knew no such disk.
func TestAJournalKeepsWhetherSeveralNodesWriteADisk(t *testing.T) {
	dir := t.TempDir()
	j := journal.Journal{Files: journal.Dir(dir)}
	want := kept(1)
	want.Disk.ManyWriters, want.Disk.Persistent = true, true
	if err := j.Store(want); err != nil {
		t.Fatal(err)
	}
	loads(t, j, want)
	path := filepath.Join(dir, id+".json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	older := strings.Replace(string(text), `,"ManyWriters":true`, "", 1)
	if older == string(text) {
		t.Fatalf("the journal has %s", text)
	}
	if err := os.WriteFile(path, []byte(older), 0o600); err != nil {
		t.Fatal(err)
	}
	want.Disk.ManyWriters = false
	loads(t, j, want)
}

// crashed stores a second value on a disk whose process, or power, ends at an effect, and says
// whether there is such an effect.
func crashed(t *testing.T, dies int, power, lazy bool) (before, after bool) {
	t.Helper()
	disk := journaltest.New()
	j := journal.Journal{Files: disk}
	if err := j.Store(kept(1)); err != nil {
		t.Fatal(err)
	}
	disk.Lazy = lazy
	effects := 0
	disk.Fault = func(string) error {
		if effects++; effects >= dies {
			return journaltest.ErrCrash
		}
		return nil
	}
	err := j.Store(kept(2))
	disk.Fault = nil
	if power {
		disk.PowerOff()
	}
	got, found, broken := j.Load(id)
	if broken != nil || !found {
		t.Errorf("a crash at effect %d (power %v) leaves %+v, %v, %v", dies, power, got, found, broken)
		return errors.Is(err, journaltest.ErrCrash), false
	}
	if err == nil && got.Opened != epoch(2) && !lazy {
		t.Errorf("stored, and after a loss of power %v it is epoch %v", power, got.Opened)
	}
	return errors.Is(err, journaltest.ErrCrash), got.Opened == epoch(2)
}

func TestACrashLeavesWhatWasKeptBeforeOrAfter(t *testing.T) {
	for _, power := range []bool{false, true} {
		dies := 1
		for ; ; dies++ {
			if crash, _ := crashed(t, dies, power, false); !crash {
				break
			}
		}
		if dies != 5 {
			t.Errorf("%d effects, want 4", dies-1)
		}
	}
}

func TestADiskThatSyncsNothingLosesWhatWasStored(t *testing.T) {
	if _, after := crashed(t, 99, true, true); after {
		t.Error("the played disk keeps what was not synced, so it proves nothing")
	}
}

func TestAFileThatCannotBeReadIsNotTakenForNoFile(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "torn": `{"Volume":"` + id, "about another volume": `{"Volume":"pvc-00000000-0000-0000-0000-000000000002"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, id+".json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if k, found, err := (journal.Journal{Files: journal.Dir(dir)}).Load(id); !errors.Is(err, provision.ErrUnavailable) || found {
				t.Errorf("loaded %+v, %v, %v", k, found, err)
			}
		})
	}
}

// unreadable are files whose disk is broken.
type unreadable struct {
	journal.Files
	err error
}

func (u unreadable) Read(string) ([]byte, error) { return nil, u.err }

func (u unreadable) List() ([]string, error) { return nil, u.err }

func TestABrokenDiskIsSaidToBeBroken(t *testing.T) {
	broken := errors.New("input/output error")
	j := journal.Journal{Files: unreadable{err: broken}}
	if k, found, err := j.Load(id); !errors.Is(err, provision.ErrUnavailable) || !errors.Is(err, broken) || found {
		t.Errorf("loaded %+v, %v, %v", k, found, err)
	}
	if ids, err := j.Volumes(); !errors.Is(err, provision.ErrUnavailable) || !errors.Is(err, broken) {
		t.Errorf("volumes: %v, %v", ids, err)
	}
}

func TestADirectoryThatCannotBeUsedIsNotTakenForOneThatKeepsNothing(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if ids, err := (journal.Journal{Files: journal.Dir(none)}).Volumes(); err != nil || len(ids) > 0 {
		t.Errorf("the volumes of a node that never had any: %v, %v", ids, err)
	}
	if err := journal.Dir(none).SyncDir(); err == nil {
		t.Error("a directory that is not there was synced")
	}
	if err := journal.Dir(none).Sync("file"); err == nil {
		t.Error("a file that is not there was synced")
	}
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := journal.Journal{Files: journal.Dir(none)}
	if ids, err := j.Volumes(); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("the volumes in a file: %v, %v", ids, err)
	}
	if err := j.Store(kept(1)); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "mkdir") {
		t.Errorf("stored in a file: %v", err)
	}
}

func TestOnlyWholeFilesOfVolumesAreListed(t *testing.T) {
	disk := journaltest.New()
	j := journal.Journal{Files: disk}
	if err := j.Store(kept(1)); err != nil {
		t.Fatal(err)
	}
	other := "pvc-00000000-0000-0000-0000-000000000002"
	for _, name := range []string{other + ".json.new", other, "notes.json"} {
		if err := disk.Write(name, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := j.Volumes(); err != nil || !cmp.Equal(ids, []string{id}) {
		t.Errorf("volumes: %v, %v", ids, err)
	}
}

func TestAVolumeIsInUseInTheBootThatTookItAndUntilItIsGivenUp(t *testing.T) {
	k := kept(3)
	k.Closed = epoch(2)
	if !k.InUse("boot") || k.InUse("another boot") || k.GaveUp(epoch(3)) || !k.GaveUp(epoch(2)) {
		t.Errorf("in its boot: %v, in another one: %v; its epoch was given up: %v, and the one before: %v",
			k.InUse("boot"), k.InUse("another boot"), k.GaveUp(epoch(3)), k.GaveUp(epoch(2)))
	}
	if k.Taken = (journal.Taken{Boot: "boot"}); k.InUse("boot") {
		t.Error("a volume that was not taken is in use")
	}
}

func TestAnErasedVolumeIsNotKeptEvenAfterALossOfPower(t *testing.T) {
	disk := journaltest.New()
	for name, j := range map[string]journal.Journal{
		"in memory": {Files: disk}, "in a directory": {Files: journal.Dir(t.TempDir())},
	} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(j.Store(kept(1)), j.Files.Write(id+".json.new", []byte("torn")), j.Erase(id), j.Erase(id)); err != nil {
				t.Fatal(err)
			}
			disk.PowerOff()
			if names, err := j.Files.List(); err != nil || len(names) > 0 {
				t.Errorf("it has %v, %v", names, err)
			}
			if _, found, err := j.Load(id); err != nil || found {
				t.Errorf("found: %v, %v", found, err)
			}
		})
	}
}

func TestACrashWhileAVolumeIsErasedLeavesItKeptOrNot(t *testing.T) {
	for dies := 1; ; dies++ {
		disk, effects := journaltest.New(), 0
		j := journal.Journal{Files: disk}
		if err := j.Store(kept(1)); err != nil {
			t.Fatal(err)
		}
		disk.Fault = func(string) error {
			if effects++; effects >= dies {
				return journaltest.ErrCrash
			}
			return nil
		}
		err := j.Erase(id)
		disk.Fault = nil
		disk.PowerOff()
		got, found, broken := j.Load(id)
		if broken != nil || found && got.Opened != epoch(1) || err == nil && found {
			t.Errorf("a crash at effect %d leaves %+v, %v, %v", dies, got, found, broken)
		}
		if err == nil {
			return
		}
	}
}

func TestANameThatIsNoVolumeIsNoFile(t *testing.T) {
	j := journal.Journal{Files: journal.Dir(t.TempDir())}
	if _, _, err := j.Load("../etc"); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("loaded: %v", err)
	}
	if err := j.Store(journal.Kept{Volume: "../etc"}); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("stored: %v", err)
	}
	if err := j.Erase("../etc"); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("erased: %v", err)
	}
}

func TestAnEpochNeverGoesBack(t *testing.T) {
	e := epoch(2)
	for _, to := range []lineage.Epoch{epoch(1), {Number: 2, ID: "other"}} {
		if err := journal.Grow(&e, to); !errors.Is(err, provision.ErrConflict) || e != epoch(2) {
			t.Errorf("%v: %v, %v", to, e, err)
		}
	}
	if err := errors.Join(journal.Grow(&e, epoch(2)), journal.Grow(&e, epoch(3))); err != nil || e != epoch(3) {
		t.Errorf("%v, %v", e, err)
	}
}
