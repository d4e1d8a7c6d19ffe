package watchdog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// played is a driver that resets after some seconds, whatever it is told, if that is not zero.
type played struct {
	stays int
	// least is the shortest time that it can be set to, and sets how often it was set.
	least, sets int
	magic       bool
	now         int
	err, silent error
}

func (p *played) set(_, seconds int) error {
	p.sets++
	p.now = max(seconds, p.least)
	if p.stays != 0 {
		p.now = p.stays
	}
	return p.err
}
func (p *played) timeout(int) (int, error) { return p.now, p.silent }
func (p *played) options(int) uint32 {
	if p.magic {
		return unix.WDIOF_MAGICCLOSE
	}
	return 0
}

// device is a played one: what is written to it goes to a file.
func device(t *testing.T, d *played, nowayout string) *Device {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"watchdog": "", "nowayout": nowayout + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &Device{Path: filepath.Join(dir, "watchdog"), Sys: dir, driver: d}
}

func written(t *testing.T, d *Device) string {
	t.Helper()
	text, err := os.ReadFile(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const long, short = 10 * time.Second, 5 * time.Second

func TestAWatchdogIsLetGoOfOnlyByTheMagicCharacter(t *testing.T) {
	p := &played{magic: true}
	d := device(t, p, "0")
	if err := errors.Join(d.Arm(long, short), d.Arm(long, short), d.Feed(short), d.Feed(short)); err != nil || p.sets != 2 {
		t.Fatalf("set %d times to two times: %v", p.sets, err)
	}
	held := d.file
	if !d.Armed() || !d.Promises() || !d.Stoppable() {
		t.Error("it does not promise anything")
	}
	if got := written(t, d); got != "\x00\x00" {
		t.Errorf("armed once and fed twice, it was told %q", got)
	}
	if err := errors.Join(d.Disarm(), d.Disarm()); err != nil {
		t.Fatal(err)
	}
	if got := written(t, d); got != "\x00\x00V" || d.Armed() {
		t.Errorf("disarmed, it was told %q", got)
	}
	if _, err := held.WriteString("x"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("it is still open: %v", err)
	}
	if err := d.Arm(long, short); err != nil || !d.Promises() {
		t.Errorf("armed anew: %v", err)
	}
}

func TestAWatchdogThatResetsTooLatePromisesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		driver   *played
		nowayout string
		kept     bool
	}{
		"it is let go of":                        {&played{stays: 60, magic: true}, "0", false},
		"it cannot be, and is fed":               {&played{stays: 60}, "0", true},
		"the kernel allows no way out":           {&played{stays: 60, magic: true}, "1", true},
		"it cannot be set":                       {&played{magic: true, err: unix.EOPNOTSUPP}, "0", false},
		"it says that it resets at no time ever": {&played{stays: -1, magic: true}, "0", false},
		"it does not say when it resets":         {&played{magic: true, silent: unix.EINVAL}, "0", false},
		"it can be set to the longer time alone": {&played{least: 8}, "0", true},
	} {
		t.Run(name, func(t *testing.T) {
			d := device(t, tc.driver, tc.nowayout)
			for range 2 {
				if err := d.Arm(long, short); err == nil {
					t.Error("it is armed without an error")
				}
				if d.Promises() || d.Armed() != tc.kept {
					t.Errorf("it promises: %v; it runs: %v", d.Promises(), d.Armed())
				}
			}
			if !tc.kept {
				return
			}
			tc.driver.sets = 0
			told := written(t, d)
			if err := errors.Join(d.Shorten(short), d.Feed(short)); err != nil || d.Stoppable() || tc.driver.sets > 0 || written(t, d) != told+"\x00" {
				t.Errorf("kept, and fed once, it was set %d times, and told %q after %q: %v", tc.driver.sets, written(t, d), told, err)
			}
		})
	}
}

func TestAWatchdogThatCannotBeSetToTheShorterTimePromisesNothing(t *testing.T) {
	d := device(t, &played{least: 8, magic: true}, "0")
	if err := d.Arm(long, short); err == nil || d.Promises() || d.Armed() {
		t.Errorf("it promises: %t, %v", d.Promises(), err)
	}
}

func TestChangingWhenTheWatchdogResetsFeedsIt(t *testing.T) {
	p := &played{magic: true}
	d := device(t, p, "0")
	if err := d.Arm(long, short); err != nil {
		t.Fatal(err)
	}
	p.sets = 0
	for _, step := range []struct {
		do   func(time.Duration) error
		to   time.Duration
		now  int
		sets int
	}{
		{d.Shorten, long, 5, 0}, {d.Feed, long, 10, 1}, {d.Feed, long, 10, 1}, {d.Shorten, long, 10, 1}, {d.Shorten, short, 5, 2}, {d.Shorten, short, 5, 2}, {d.Feed, short, 5, 2},
	} {
		if err := step.do(step.to); err != nil || p.now != step.now || p.sets != step.sets {
			t.Errorf("it resets after %d s and was set %d times: want %d and %d, %v", p.now, p.sets, step.now, step.sets, err)
		}
	}
	if got := written(t, d); got != "\x00\x00" {
		t.Errorf("fed twice without a change, it was told %q", got)
	}
}

func TestAWatchdogThatDoesNotHearIsNeitherFedNorLetGoOf(t *testing.T) {
	d := device(t, &played{magic: true}, "0")
	if err := d.Arm(long, short); err != nil {
		t.Fatal(err)
	}
	d.file.Close()
	if err := d.Feed(short); !errors.Is(err, os.ErrClosed) {
		t.Errorf("it was fed: %v", err)
	}
	if err := d.Disarm(); !errors.Is(err, os.ErrClosed) || !d.Armed() {
		t.Errorf("it was let go of: %v", err)
	}
}

func TestAMachineWithoutAWatchdogSaysSo(t *testing.T) {
	d := New(filepath.Join(t.TempDir(), "watchdog0"))
	if err := d.Arm(long, short); err == nil || !strings.Contains(err.Error(), "has no watchdog") || d.Armed() {
		t.Error(err)
	}
	if err := d.Disarm(); err != nil {
		t.Error(err)
	}
	directory := &Device{Path: t.TempDir(), driver: kernel{}}
	if err := directory.Arm(long, short); err == nil || !strings.Contains(err.Error(), "opening watchdog") || directory.Armed() {
		t.Errorf("a directory: %v", err)
	}
	plain := device(t, &played{}, "0")
	plain.driver = kernel{}
	if err := plain.Arm(long, short); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("a file that is no watchdog: %v", err)
	}
}
