package inline

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
)

var errBroken = errors.New("the disk is broken")

func publish(ctx context.Context, n *node) error { return n.Publish(ctx, n.request()) }

func unpublish(ctx context.Context, n *node) error { return n.Unpublish(ctx, h, n.target()) }

func stats(ctx context.Context, n *node) error {
	_, err := n.Stats(ctx, h, n.target())
	return err
}

// marked says whether the data counts as handed to its pod.
func (n *node) marked() bool {
	n.t.Helper()
	marked, err := n.marks.Has(Mark{id, owner})
	if err != nil {
		n.t.Fatal(err)
	}
	return marked
}

// A mark comes after the filesystem and before the mount.
func TestAPublishThatFailsSaysWhyAndNothingComesAfterIt(t *testing.T) {
	for operation, want := range map[string]struct{ made, marked bool }{
		"Has mark": {false, false},
		"Format":   {true, false},
		"Set mark": {true, false},
		"Mount":    {true, true},
	} {
		t.Run(operation, func(t *testing.T) {
			n := newNode(t)
			n.fails[operation] = errBroken
			if err := publish(t.Context(), n); !errors.Is(err, errBroken) {
				t.Errorf("error %v; want %v", err, errBroken)
			}
			if made := n.record() != nil; made != want.made || n.marked() != want.marked || n.mounted() {
				t.Errorf("made %v, marked %v, mounted %v", made, n.marked(), n.mounted())
			}
			clear(n.fails)
			n.publish()
			if !n.mounted() {
				t.Error("the pod does not have its volume")
			}
		})
	}
}

func TestDataThatCannotBeReadIsNotSaidToBeLost(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.reboot()
	n.fails["Get"] = errBroken
	if err := publish(t.Context(), n); !errors.Is(err, errBroken) || errors.Is(err, provision.ErrNotFound) {
		t.Errorf("error %v; want %v", err, errBroken)
	}
}

func TestAnUnpublishThatFailsSaysWhyAndKeepsTheData(t *testing.T) {
	for operation, mounted := range map[string]bool{"Unmount": true, "Get": false, "table": false, "Delete": false} {
		t.Run(operation, func(t *testing.T) {
			n := newNode(t)
			n.publish()
			n.fails[operation] = errBroken
			if err := unpublish(t.Context(), n); !errors.Is(err, errBroken) {
				t.Errorf("error %v; want %v", err, errBroken)
			}
			if n.record() == nil || !n.marked() || n.mounted() != mounted {
				t.Errorf("record %v, marked %v, mounted %v", n.record(), n.marked(), n.mounted())
			}
			clear(n.fails)
			if err := unpublish(t.Context(), n); err != nil {
				t.Error(err)
			}
			if got := n.left(); got != nothing {
				t.Errorf("left on the node: %s", got)
			}
		})
	}
}

func TestFiguresThatCannotBeReadAreNotSaidToBeMissing(t *testing.T) {
	for _, operation := range []string{"Get", "table", "Stats"} {
		t.Run(operation, func(t *testing.T) {
			n := newNode(t)
			n.publish()
			n.fails[operation] = errBroken
			if err := stats(t.Context(), n); !errors.Is(err, errBroken) || errors.Is(err, provision.ErrNotFound) {
				t.Errorf("error %v; want %v", err, errBroken)
			}
		})
	}
}

func TestAVolumeWithAProblemIsNotMountedAndHasNoFigures(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.problem = "its thin pool is out of space"
	if err := stats(t.Context(), n); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), n.problem) {
		t.Errorf("figures: error %v; want %q", err, n.problem)
	}
	n.reboot()
	if err := publish(t.Context(), n); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), n.problem) {
		t.Errorf("error %v; want %q", err, n.problem)
	}
	if n.mounted() {
		t.Error("it was mounted")
	}
}

func TestACallForAnotherKindOfVolumeIsRefusedAndTouchesNothing(t *testing.T) {
	const claim = "pvc-" + uid
	for what, call := range map[string]func(ctx context.Context, n *node) error{
		"publish": func(ctx context.Context, n *node) error {
			r := n.request()
			r.Handle = claim
			return n.Publish(ctx, r)
		},
		"unpublish": func(ctx context.Context, n *node) error { return n.Unpublish(ctx, claim, n.target()) },
		"figures": func(ctx context.Context, n *node) error {
			_, err := n.Stats(ctx, claim, n.target())
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t)
			n.publish()
			if err := call(t.Context(), n); !errors.Is(err, provision.ErrInvalid) || !strings.Contains(err.Error(), claim) {
				t.Errorf("error %v; want %v and the id", err, provision.ErrInvalid)
			}
			if !n.mounted() {
				t.Error("the volume was taken off its target")
			}
		})
	}
}

func TestATargetThatIsNoPodsVolumeIsNeitherUnmountedNorRemoved(t *testing.T) {
	n := newNode(t)
	outside := t.TempDir()
	if err := n.Unpublish(t.Context(), h, outside); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("error %v; want %v", err, provision.ErrInvalid)
	}
	if _, err := os.Lstat(outside); err != nil {
		t.Error(err)
	}
}
