package linux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "device")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// opened returns an open file with the content, in place of an open device.
func opened(t *testing.T, content []byte) *os.File {
	t.Helper()
	f, err := os.Open(file(t, content))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func withTools(t *testing.T, s *runtest.Script) *Mounter {
	t.Helper()
	m, err := New(Config{Runner: s})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRepairFollowsTheExitCode(t *testing.T) {
	for name, tc := range map[string]struct {
		code  int
		class error // nil: it may be mounted
		fails bool
	}{
		"the tool found no damage":                      {code: 0},
		"the tool repaired damage":                      {code: 1},
		"the tool repaired damage and advises a reboot": {code: 2},
		"the tool sets both bits of a repair":           {code: 3},
		"the tool left damage":                          {code: 4, class: mount.ErrCorrupt, fails: true},
		"the tool repaired some damage and left some":   {code: 5, class: mount.ErrCorrupt, fails: true},
		"the tool could not work":                       {code: 8, fails: true},
		"a request stopped the tool":                    {code: 32, fails: true},
		"a signal killed the tool":                      {code: -1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var s runtest.Script
			s.Handle("e2fsck", func(_ context.Context, c run.Command) ([]byte, error) {
				if tc.code == 0 {
					return nil, nil
				}
				return nil, runtest.Exit(c, tc.code, "what happened")
			})
			err := withTools(t, &s).repair(opened(t, ext4Device(1, ext4Recover, 10)), provision.Ext4, false)
			if (err != nil) != tc.fails || (tc.class == nil) == errors.Is(err, mount.ErrCorrupt) {
				t.Errorf("got %v", err)
			}
			for _, c := range s.Calls() {
				if c.Operation != "e2fsck" || c.Args[0] != "-p" {
					t.Errorf("ran %v", c)
				}
			}
		})
	}
}

func TestCleanFilesystemNeedsNoProcess(t *testing.T) {
	var s runtest.Script
	m := withTools(t, &s)
	if err := m.repair(opened(t, ext4Device(1, 0, 10)), provision.Ext4, false); err != nil {
		t.Error(err)
	}
	if err := m.repair(opened(t, xfsDevice(10)), provision.XFS, false); err != nil {
		t.Error(err)
	}
	if calls := s.Calls(); len(calls) != 0 {
		t.Errorf("ran %v", calls)
	}
}

func TestAWholeCheckOfExt4IsMadeHoweverItWasUnmounted(t *testing.T) {
	for name, state := range map[string]uint16{"cleanly": 1, "not cleanly": 0} {
		var s runtest.Script
		s.Handle("e2fsck", func(context.Context, run.Command) ([]byte, error) { return nil, nil })
		device := opened(t, ext4Device(state, 0, 10))
		if err := withTools(t, &s).repair(device, provision.Ext4, true); err != nil {
			t.Error(err)
		}
		if calls := s.Calls(); len(calls) != 1 || !slices.Equal(calls[0].Args, []string{"-f", "-p", device.Name()}) {
			t.Errorf("%s: ran %v", name, calls)
		}
	}
}

func TestAWholeCheckOfXFSRepairsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		replay error
		code   int
		class  error // nil: it may be mounted
		fails  bool
	}{
		"no damage":                        {},
		"damage":                           {code: 1, class: mount.ErrCorrupt, fails: true},
		"a log that is dirty still":        {code: 2, fails: true},
		"a tool that was killed":           {code: -1, fails: true},
		"a log that cannot be replayed":    {replay: unix.EUCLEAN, class: mount.ErrCorrupt, fails: true},
		"a device that is busy":            {replay: unix.EBUSY, fails: true},
		"a checksum of the log that fails": {replay: unix.EBADMSG, class: mount.ErrCorrupt, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var s runtest.Script
			replayed := ""
			s.Handle("xfs_repair", func(_ context.Context, c run.Command) ([]byte, error) {
				if replayed == "" {
					t.Error("the log is not replayed before")
				}
				if tc.code == 0 {
					return nil, nil
				}
				return nil, runtest.Exit(c, tc.code, "what happened")
			})
			m, device := withTools(t, &s), opened(t, xfsDevice(10))
			m.replay = func(of string) error { replayed = of; return tc.replay }
			err := m.repair(device, provision.XFS, true)
			if (err != nil) != tc.fails || (tc.class == nil) == errors.Is(err, mount.ErrCorrupt) || replayed != device.Name() {
				t.Errorf("replayed %q, got %v", replayed, err)
			}
			for _, c := range s.Calls() {
				if tc.replay != nil || !slices.Equal(c.Args, []string{"-n", device.Name()}) {
					t.Errorf("ran %v", c)
				}
			}
		})
	}
}

func TestDamagedVolumeIsNeverFormatted(t *testing.T) {
	var s runtest.Script
	err := withTools(t, &s).repair(opened(t, make([]byte, 4096)), provision.Ext4, false)
	if !errors.Is(err, mount.ErrCorrupt) || len(s.Calls()) != 0 {
		t.Errorf("got %v after running %v", err, s.Calls())
	}
}

func TestMkfsRefusesFilesUnknownFilesystemsAndUnknownOptions(t *testing.T) {
	var s runtest.Script
	m := withTools(t, &s)
	if err := m.Mkfs(t.Context(), provision.Volume{Content: provision.Content{Source: file(t, nil), Identity: "dm:a"}}, "ext4", ""); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("a file: %v", err)
	}
	null := provision.Volume{Content: provision.Content{Source: "/dev/null", Identity: "dm:a"}}
	if err := m.Mkfs(t.Context(), null, "vfat", ""); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("an unknown filesystem: %v", err)
	}
	if err := m.Mkfs(t.Context(), null, "xfs", "-l logdev=/dev/sda"); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("an unknown option: %v", err)
	}
	if calls := s.Calls(); len(calls) != 0 {
		t.Errorf("ran %v", calls)
	}
}

func TestMountOptionsAreSplitForTheKernel(t *testing.T) {
	flags, data := options(mount.Request{ReadOnly: true, Options: []string{"noatime", "commit=5", "commit=5", "nodev", "discard"}}, nil)
	if flags != 1|4|0x400 || data != "commit=5,discard" {
		t.Errorf("flags %#x, data %q", flags, data)
	}
	label := `context="u:r:t:s0:c1,c2"`
	if _, data := options(mount.Request{Options: []string{label, "discard", `context="u:r:t:s0:c2,c1"`}}, nil); data != "discard,"+label {
		t.Errorf("a context once and in quotes: %q", data)
	}
	for name := range optionFlags {
		if !mount.IsFlag(name) {
			t.Errorf("%s has a flag and is not accepted", name)
		}
	}
	if err := mount.CheckOptions("ext4", slices.Collect(func(yield func(string) bool) {
		for name := range optionFlags {
			yield(name)
		}
	})); err != nil {
		t.Error(err)
	}
}

func TestFiguresOfADeadDeviceHangOneCallAndNoCaller(t *testing.T) {
	var f flights
	release, calls := make(chan struct{}), 0
	dead := func(string) (mount.Stats, error) {
		calls++ // one caller at a time, or the race detector reports it
		<-release
		return mount.Stats{Total: 7}, nil
	}
	first := f.join("/a", dead)
	for range 100 {
		if f.join("/a", dead) != first {
			t.Fatal("a second call was begun")
		}
	}
	other := f.join("/b", func(string) (mount.Stats, error) { return mount.Stats{Total: 1}, nil })
	<-other.done
	close(release)
	<-first.done
	if first.stats.Total != 7 || calls != 1 {
		t.Errorf("figures %+v after %d calls", first.stats, calls)
	}
	<-f.join("/a", func(string) (mount.Stats, error) { return mount.Stats{}, nil }).done
}

func TestACallerThatAsksForTheFiguresOfADeadDeviceIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := withTools(t, &runtest.Script{})
		const mounted = "/proc"
		release := make(chan struct{})
		f := m.stats.join(mounted, func(string) (mount.Stats, error) { <-release; return mount.Stats{}, nil })
		if _, err := m.Stats(t.Context(), mounted); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		close(release)
		<-f.done
		if _, err := m.Stats(t.Context(), mounted); err != nil {
			t.Errorf("once it answers: %v", err)
		}
	})
}

func TestPathsThatAreNotMountedHaveNoFiguresAndNeedNoUnmount(t *testing.T) {
	m := withTools(t, &runtest.Script{})
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "missing"), filepath.Join(dir, "missing", "deep")} {
		if _, err := m.Stats(t.Context(), path); !errors.Is(err, mount.ErrNotMounted) {
			t.Errorf("figures of %s: %v", path, err)
		}
		if err := m.Unmount(t.Context(), path); err != nil {
			t.Errorf("unmounting %s: %v", path, err)
		}
	}
}
