package attached

import (
	"context"
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/provision"
)

func TestAVolumeOfWhichNothingIsKnownIsAnErrorAndNeverAnEmptyDisk(t *testing.T) {
	for name, machine := range map[string]func(*machine){
		"its device cannot be opened":         func(m *machine) { m.unopened = provision.ErrUnavailable },
		"its mounts are not known":            func(m *machine) { m.unlisted = provision.ErrUnavailable },
		"its disk's beginning cannot be read": func(m *machine) { m.unread = errCut },
		"its disk's end cannot be read":       func(m *machine) { m.unread, m.end = errCut, true },
	} {
		m := newMachine()
		machine(m)
		if got, err := taken(t, m).Get(t.Context(), id); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	v := taken(t, newMachine(), func(k *journal.Kept) { k.Taken = journal.Taken{} })
	if got, err := v.Get(t.Context(), id); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("one that was not taken is %+v, %v", got, err)
	}
	v.c.Journal.Files = unreadable{v.c.Journal.Files}
	if got, err := v.Get(t.Context(), id); !errors.Is(err, provision.ErrUnavailable) || errors.Is(err, provision.ErrNotFound) {
		t.Errorf("one of a journal that cannot be read is %+v, %v", got, err)
	}
}

type unreadable struct{ journal.Files }

func (unreadable) Read(string) ([]byte, error) { return nil, errCut }

func TestAFilesystemIsNotTakenForMadeIfItMayNotBe(t *testing.T) {
	for name, tc := range map[string]struct {
		machine func(*machine)
		made    int
		says    string
	}{
		"mkfs makes nothing":          {func(m *machine) { m.makes = func() {} }, 1, `the disk bears ""`},
		"mkfs makes another one":      {func(m *machine) { m.makes = func() { m.format(provision.XFS) } }, 1, `the disk bears "xfs"`},
		"what it made cannot be read": {func(m *machine) { m.makes = func() { m.format(provision.Ext4); m.unread = errCut } }, 1, "reading the filesystem that was made"},
		"the mark cannot be read": {func(m *machine) {
			m.makes = func() { m.format(provision.Ext4); m.unread, m.end = errCut, true }
		}, 1, "reading the mark"},
		"the device is not closed well": {func(m *machine) { m.unclosed = errCut }, 0, errCut.Error()},
		"nor is it after mkfs":          {func(m *machine) { m.makes = func() { m.format(provision.Ext4); m.unclosed = errCut } }, 1, errCut.Error()},
		"others hold it after mkfs":     {func(m *machine) { m.makes = func() { m.format(provision.Ext4); m.held = errCut } }, 1, errCut.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine()
			tc.machine(m)
			if got, err := taken(t, m).Format(t.Context(), ask(provision.Ext4)); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("made %+v, %v", got, err)
			}
			if m.made != tc.made {
				t.Errorf("mkfs ran %d times, want %d", m.made, tc.made)
			}
		})
	}
}

func TestNothingIsMadeOnceTheCallHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := newMachine()
	m.marked = cancel // as when the node is fenced
	if _, err := taken(t, m).Format(ctx, ask(provision.Ext4)); !errors.Is(err, context.Canceled) || m.made > 0 {
		t.Errorf("mkfs ran %d times: %v", m.made, err)
	}
}

func TestAFilesystemThatUsesThePlaceOfTheMarkKeepsIt(t *testing.T) {
	m := newMachine()
	m.makes = func() {
		m.format(provision.Ext4)
		copy(blockOf(m), "a backup of the superblock")
	}
	if got, err := taken(t, m).Format(t.Context(), ask(provision.Ext4)); err != nil || got.Filesystem != provision.Ext4 || blockOf(m).empty() {
		t.Errorf("made %+v, %v", got, err)
	}
}
