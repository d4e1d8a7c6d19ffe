package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/run"
)

// canvas is a volume to format. It notes which functions were called, of which one may fail.
type canvas struct {
	provision.Volume
	ids    keyed.Locks[string]
	fails  string
	called []string
}

func (c *canvas) call(name string) error {
	c.called = append(c.called, name)
	if name == c.fails {
		return errStuck
	}
	return nil
}

// format makes a filesystem on the canvas.
func (c *canvas) format(ctx context.Context, filesystem string, change ...func(*engine.Formatter)) error {
	f := engine.Formatter{
		IDs: &c.ids, Tasks: &run.Tasks{},
		Get:     func(context.Context, string) (provision.Volume, error) { return c.Volume, c.call("get") },
		Confirm: func(provision.Volume) error { return c.call("confirm") },
		Mkfs:    func(context.Context, provision.Volume, string, string) error { return c.call("mkfs") },
		Record:  func(context.Context, provision.Volume, string) error { return c.call("record") },
		View:    func(context.Context, provision.Volume) (provision.Volume, error) { return c.Volume, c.call("view") },
	}
	for _, change := range change {
		change(&f)
	}
	_, err := f.Format(ctx, provision.FormatRequest{ID: "pvc-1", Filesystem: filesystem})
	f.Tasks.Wait()
	return err
}

func TestAFormatEndsWithTheFirstStepThatFails(t *testing.T) {
	for fails, want := range map[string][]string{
		"get":     {"get"},
		"confirm": {"get", "confirm"},
		"mkfs":    {"get", "confirm", "mkfs"},
		"record":  {"get", "confirm", "mkfs", "record"},
		"":        {"get", "confirm", "mkfs", "record", "view"},
	} {
		t.Run("it fails: "+fails, func(t *testing.T) {
			c := canvas{fails: fails}
			if err := c.format(t.Context(), "ext4"); errors.Is(err, errStuck) != (fails != "") || !slices.Equal(c.called, want) {
				t.Errorf("%v after %q, want %q", err, c.called, want)
			}
			if _, err := c.ids.TryLock("pvc-1"); err != nil {
				t.Error("the volume is locked still")
			}
		})
	}
}

func TestAFilesystemIsMadeOnlyWhereItIsMissingAndMayBeMade(t *testing.T) {
	for name, tc := range map[string]struct {
		recorded, filesystem string
		change               func(*engine.Formatter)
		want                 error
		called               []string
	}{
		"it is there already":    {recorded: "ext4", filesystem: "ext4", called: []string{"get"}},
		"another one is there":   {recorded: "xfs", filesystem: "ext4", want: provision.ErrConflict, called: []string{"get"}},
		"Berth does not know it": {filesystem: "fat", want: provision.ErrInvalid},
		"a raw volume gets none": {filesystem: provision.Raw, called: []string{"get", "confirm", "record", "view"}},
		"the device need not be looked at once more": {
			filesystem: "ext4", change: func(f *engine.Formatter) { f.Confirm = nil }, called: []string{"get", "mkfs", "record", "view"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := canvas{Volume: provision.Volume{ID: "pvc-1", Filesystem: tc.recorded}}
			if tc.change == nil {
				tc.change = func(*engine.Formatter) {}
			}
			if err := c.format(t.Context(), tc.filesystem, tc.change); !errors.Is(err, tc.want) || !slices.Equal(c.called, tc.called) {
				t.Errorf("%v after %q, want %v after %q", err, c.called, tc.want, tc.called)
			}
		})
	}
}

func TestAVolumeThatAnotherCallHoldsIsNotFormatted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c canvas
		if _, err := c.ids.Lock(t.Context(), "pvc-1"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.format(ctx, "ext4"); !errors.Is(err, context.DeadlineExceeded) || c.called != nil {
			t.Errorf("%v after %q", err, c.called)
		}
	})
}
