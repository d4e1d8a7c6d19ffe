package keep

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/guard"
)

func TestWhatIsOpenOutlivesTheGuardButNotABoot(t *testing.T) {
	f := File(filepath.Join(t.TempDir(), "guard", "state"))
	if s, err := f.Load(); err != nil || s.Boot != "" {
		t.Fatalf("before anything was kept: %+v, %v", s, err)
	}
	for _, volume := range []string{"a", "b"} {
		want := State{Boot: "boot", Renewed: 5, Sets: [][]string{{"n1", "n2", "n3"}}, Open: []guard.Epoch{epoch(volume, 1)}, Agent: "/agent"}
		if err := f.Save(want); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Load(); err != nil || !cmp.Equal(got, want) {
			t.Errorf("kept %+v, %v", got, err)
		}
	}
	for boot, open := range map[string]int{"boot": 1, "next": 0} {
		w := newWorld(t, 1)
		k, err := New(Config{Boot: boot, Now: w.now, Store: f, Watchdog: (*dog)(w)})
		if err != nil {
			t.Fatal(err)
		}
		if s := k.Status(); len(s.Open) != open || s.Fenced == (open == 1) {
			t.Errorf("in boot %s: %+v", boot, s)
		}
	}
}

func TestAGuardDoesNotBeginWithoutWhatTheOneBeforeKnew(t *testing.T) {
	f := File(filepath.Join(t.TempDir(), "state"))
	if err := os.WriteFile(string(f), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Store: f}); err == nil {
		t.Error("it begins")
	}
}
