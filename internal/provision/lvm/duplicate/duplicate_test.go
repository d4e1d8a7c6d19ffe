package duplicate_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision/lvm/duplicate"
)

var errBroken = errors.New("a broken sector")

// target is a device in memory that holds other data at first.
type target struct {
	data, synced []byte
	fails        error
	steps        int
}

func used(size int) *target { return &target{data: bytes.Repeat([]byte{0xff}, size)} }

func (d *target) WriteAt(b []byte, at int64) (int, error) {
	d.steps++
	return copy(d.data[at:], b), d.fails
}

func (d *target) Zero(at, length int64) error {
	clear(d.data[at : at+length])
	return d.fails
}

func (d *target) Sync() error {
	d.synced = slices.Clone(d.data)
	return d.fails
}

// broken is a source that cannot be read from some byte on.
type broken struct {
	*bytes.Reader
	from int64
}

func (s broken) ReadAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > s.from {
		return 0, errBroken
	}
	return s.Reader.ReadAt(b, at)
}

func TestTheCopiedPartOfATargetEqualsItsSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"\x00\x00\x00\x00", "data", "\x00\x00\x00x"}), 0, 20).Draw(t, "pieces")
		var content []byte
		for _, p := range pieces {
			content = append(content, p...)
		}
		more := rapid.IntRange(0, 9).Draw(t, "more")
		step := rapid.Int64Range(1, 30).Draw(t, "step")
		to := used(len(content) + more)
		if err := duplicate.Do(t.Context(), to, bytes.NewReader(content), int64(len(content)), step); err != nil {
			t.Fatal(err)
		}
		want := append(slices.Clone(content), bytes.Repeat([]byte{0xff}, more)...)
		if !bytes.Equal(to.synced, want) {
			t.Fatalf("the target holds %q for good, want %q", to.synced, want)
		}
	})
}

func TestAFailedReadOrWriteIsAnError(t *testing.T) {
	content := bytes.Repeat([]byte("data"), 8)
	for name, tc := range map[string]struct {
		from broken
		to   *target
	}{
		"a source that breaks off": {broken{bytes.NewReader(content), 16}, used(32)},
		"a target that fails":      {broken{bytes.NewReader(content), 32}, &target{data: make([]byte, 32), fails: errBroken}},
	} {
		if err := duplicate.Do(t.Context(), tc.to, tc.from, 32, 8); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAShortSourceIsAnErrorAndNotACopy(t *testing.T) {
	if err := duplicate.Do(t.Context(), used(32), bytes.NewReader([]byte("short")), 32, 8); err == nil {
		t.Error("a source that ends early was copied whole")
	}
}

// stopping ends a context after a number of steps.
type stopping struct {
	*target
	after int
	stop  context.CancelFunc
}

func (d *stopping) WriteAt(b []byte, at int64) (int, error) {
	n, err := d.target.WriteAt(b, at)
	if d.steps == d.after {
		d.stop()
	}
	return n, err
}

func TestACopyStopsBetweenTwoSteps(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	to := &stopping{used(32), 2, stop}
	err := duplicate.Do(ctx, to, bytes.NewReader(bytes.Repeat([]byte("data"), 8)), 32, 8)
	if !errors.Is(err, context.Canceled) || to.steps != 2 || to.synced != nil {
		t.Errorf("stopped after %d steps with %v", to.steps, err)
	}
}
