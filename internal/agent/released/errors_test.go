package released

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

var errBroken = errors.New("it is broken")

// Each effect fails once, and in the second run the API server is away from then on. A failure that is not told is
// one after which a disk could be called wiped that is not.
func TestEachFailureIsToldAndMadeUpFor(t *testing.T) {
	for _, filesystem := range []bool{false, true} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("a filesystem %v, the API server is away %v", filesystem, away), func(t *testing.T) {
				for at := 1; ; at++ {
					w := newWorld(t)
					if filesystem {
						w.ofTheVolume()
					}
					failed := ""
					w.breaks = func(effect int, name string) error {
						switch {
						case effect == at:
							failed = name
							return errBroken
						case effect > at && away && (name == "Read" || name == "Replace"):
							return errDead
						case effect > at && name == "Close":
							return errors.New("closing fails, too")
						}
						return nil
					}
					a := w.process("a")
					after, err := a.wiper().Wipe(t.Context(), lunName)
					if failed == "" {
						if at < 40 {
							t.Errorf("a wipe takes %d effects", at)
						}
						break
					}
					told := strings.Contains(w.lun.Status.Wipe.Problem, errBroken.Error())
					if !errors.Is(err, errBroken) || after != again {
						t.Errorf("effect %d, %s: %v, again after %v", at, failed, err, after)
					}
					if failed != "Read" && (told == away || errors.Is(err, errDead) != away) {
						t.Errorf("effect %d, %s: the LUN says %q, and the error is %v", at, failed, w.lun.Status.Wipe.Problem, err)
					}
					w.breaks = nil
					if err := a.lives(); err != nil {
						t.Fatalf("effect %d, %s: %v", at, failed, err)
					}
					w.free()
				}
			})
		}
	}
}

func TestAProblemThatIsThereIsNotWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.breaks = func(_ int, name string) error {
		if name == "Attach" {
			return errBroken
		}
		return nil
	}
	wipe := func() string {
		if _, err := w.process("a").wiper().Wipe(t.Context(), lunName); !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		if !strings.Contains(w.lun.Status.Wipe.Problem, errBroken.Error()) {
			t.Errorf("the LUN says %q", w.lun.Status.Wipe.Problem)
		}
		return w.lun.ResourceVersion
	}
	if first, second := wipe(), wipe(); first != second {
		t.Errorf("the LUN was written again: %s, then %s", first, second)
	}
}

func TestProgressIsRecordedNowAndThenAndOnlyIfItLasts(t *testing.T) {
	for thin, want := range map[bool]int{false: 3, true: 0} {
		w := newWorld(t)
		w.thin = thin
		if err := w.process("a").lives(); err != nil {
			t.Fatal(err)
		}
		if w.progress != want {
			t.Errorf("thin %v: progress was recorded %d times", thin, w.progress)
		}
	}
}

// What a look at the disk finds changes in the middle of a wipe, although the open device still takes writes.
func TestNothingIsWrittenAfterALookThatDoesNotShowTheDisk(t *testing.T) {
	for name, change := range map[string]func(v *shared.View){
		"it is another device":            func(v *shared.View) { v.Content.Source = "/dev/other" },
		"another session has it":          func(v *shared.View) { v.Holding = false },
		"another key has the reservation": func(v *shared.View) { v.Holder = raw("b", tenancy) },
		"it is not registered":            func(v *shared.View) { v.Registered = 0 },
		"it is being attached":            func(v *shared.View) { v.Link = ownership.Attaching },
	} {
		for _, thin := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, thin %v", name, thin), func(t *testing.T) {
				for zeros := 1; zeros <= size/unit; zeros++ { // at the last, before the end is recorded
					w := newWorld(t)
					w.thin = thin
					ctx, cancel := context.WithCancel(t.Context())
					w.seen = func(v *shared.View) {
						if w.zeros == zeros {
							change(v)
							cancel() // one look is enough
						}
					}
					_, _ = w.process("a").wiper().Wipe(ctx, lunName)
					if w.zeros != zeros || w.lun.Status.Wipe.Outcome != "" {
						t.Errorf("after %d ranges: %d are zeroed, and the LUN says %+v", zeros, w.zeros, w.lun.Status.Wipe)
					}
				}
			})
		}
	}
}

// A controller changes the LUN while this node wipes the disk. The node records nothing of its wipe in a LUN that does
// not order it any more.
func TestAWipeThatWasTakenFromANodeRecordsNothing(t *testing.T) {
	later := v1alpha1.Epoch{Number: 9, ID: "later"}
	for name, tc := range map[string]struct {
		change func(w *world)
		// anew: the node wipes again, from the beginning.
		anew bool
	}{
		"another node is named":            {change: func(w *world) { w.lun.Status.Wipe.Node = "b"; w.touch() }},
		"the node is named in a new epoch": {change: func(w *world) { w.order("a", later) }, anew: true},
		"the LUN is another of that name":  {change: func(w *world) { w.lun.UID = "2"; w.lun.Status.Wipe = nil; w.touch() }},
		"another LUN has the same order":   {change: func(w *world) { w.lun.UID, w.lun.Status.Wipe.Done = "2", 0; w.touch() }, anew: true},
		"the order is gone":                {change: func(w *world) { w.lun.Status.Wipe = nil; w.touch() }},
		"the LUN is deleted":               {change: func(w *world) { leaving(&w.lun); w.touch() }},
		"the wipe was called a failure":    {change: func(w *world) { w.lun.Status.Wipe.Outcome = v1alpha1.LUNWipeFailed; w.touch() }},
	} {
		t.Run(name, func(t *testing.T) {
			for zeros := 1; zeros <= size/unit; zeros++ {
				w := newWorld(t)
				changed := false
				w.before = func(string, int) {
					if w.zeros == zeros && !changed {
						changed = true
						tc.change(w)
						w.before = nil
					}
				}
				_, err := w.process("a").wiper().Wipe(t.Context(), lunName)
				if err != nil {
					t.Fatalf("after %d ranges: %v", zeros, err)
				}
				now := w.lun.Status.Wipe
				if !tc.anew && w.zeros > zeros+2 { // until it is to record its progress
					t.Errorf("after %d ranges: %d are zeroed", zeros, w.zeros)
				}
				if tc.anew {
					if w.free(); w.zeros < zeros+size/unit-2 {
						t.Errorf("after %d ranges: %d are zeroed", zeros, w.zeros)
					}
					continue
				}
				if now != nil && (now.Done > int64(zeros)*unit || now.Outcome == v1alpha1.LUNWiped || now.Outcome == v1alpha1.LUNCleared || now.Problem != "") {
					t.Errorf("after %d ranges: the LUN says %+v", zeros, now)
				}
			}
		})
	}
}

// The LUN is taken from the node while a write fails: only the failure is told, and only to the caller.
func TestAFailureOfAWipeThatWasTakenFromTheNodeIsNotInTheLUN(t *testing.T) {
	w := newWorld(t)
	w.breaks = func(_ int, name string) error {
		if name == "zero" {
			w.order("b", v1alpha1.Epoch{Number: 9, ID: "later"})
			return errBroken
		}
		return nil
	}
	if _, err := w.process("a").wiper().Wipe(t.Context(), lunName); !errors.Is(err, errBroken) || errors.Is(err, errOverruled) || w.lun.Status.Wipe.Problem != "" {
		t.Errorf("%v, and the LUN says %q", err, w.lun.Status.Wipe.Problem)
	}
}

// The disk is another session's for one look, between the decision to wipe it and the wipe.
func TestADiskThatIsTakenBeforeTheWipeBeginsIsNotOpened(t *testing.T) {
	for at := 1; at <= 12; at++ {
		w := newWorld(t)
		w.seen = func(v *shared.View) {
			if w.looks == at {
				v.Holding = false
			}
		}
		if err := w.process("a").lives(); err != nil {
			t.Fatal(err)
		}
		w.free()
	}
}

func TestALUNThatIsGoneIsLeft(t *testing.T) {
	for at := 1; at < 30; at++ {
		w, zeros := newWorld(t), -1
		w.breaks = func(effect int, name string) error {
			if effect >= at && name == "Read" {
				if zeros < 0 {
					zeros = w.zeros
				}
				return apierrors.NewNotFound(schema.GroupResource{}, lunName)
			}
			return nil
		}
		if after, err := w.process("a").wiper().Wipe(t.Context(), lunName); err != nil || after != 0 || w.lun.Status.Wipe.Problem != "" || w.zeros != zeros {
			t.Errorf("from effect %d on: %v, %v, %q, %d ranges are zeroed after %d", at, after, err, w.lun.Status.Wipe.Problem, w.zeros, zeros)
		}
	}
}

// Another client changes the LUN before every second write of this node.
func TestALUNThatChangesMeanwhileIsReadAgain(t *testing.T) {
	w := newWorld(t)
	writes, touched := 0, 0
	a := w.process("a")
	w.breaks = func(_ int, name string) error {
		if name == "Replace" {
			if writes++; writes%2 == 1 {
				touched++
				w.touch()
			}
		}
		return nil
	}
	if after, err := a.wiper().Wipe(t.Context(), lunName); err != nil || after != 0 || touched < 4 {
		t.Fatalf("%v, %v, after %d changes", after, err, touched)
	}
	w.free()
	if w.lun.Status.Wipe.Problem != "" || w.zeros != size/unit {
		t.Errorf("the LUN says %q, and %d ranges are zeroed", w.lun.Status.Wipe.Problem, w.zeros)
	}
}

func TestAnotherNodeThatIsFasterIsNoFailure(t *testing.T) {
	w := newWorld(t)
	refused := false
	w.breaks = func(_ int, name string) error {
		if name == "Reserve" && !refused {
			refused = true
			return fmt.Errorf("%w: another key has it", provision.ErrConflict)
		}
		return nil
	}
	if after, err := w.process("a").wiper().Wipe(t.Context(), lunName); err != nil || after != 0 || !refused {
		t.Fatal(after, err)
	}
	w.free()
}

func TestADiskOfAnotherNodesWipeIsNotLookedAt(t *testing.T) {
	for _, order := range []func(w *world){func(w *world) { w.order("b", wiping) }, func(w *world) { w.lun.Status.Wipe = nil }} {
		w := newWorld(t)
		order(w)
		a := w.process("a")
		if after, err := a.wiper().Wipe(t.Context(), lunName); err != nil || after != 0 || w.looks != 0 || a.effects != 1 {
			t.Errorf("%v, %v, after %d looks and %d effects", after, err, w.looks, a.effects)
		}
	}
}

func TestAnAttachThatIsUnderWayIsWaitedForWithoutPolling(t *testing.T) {
	w := newWorld(t)
	w.seen = func(v *shared.View) { v.Link = ownership.Attaching }
	if after, err := w.process("a").wiper().Wipe(t.Context(), lunName); err != nil || after != attaching || w.looks != 1 {
		t.Errorf("%v, %v, after %d looks", after, err, w.looks)
	}
}

func TestAWiperThatIsToldToEndSaysNothingOfIt(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.before = func(string, int) {
		if w.zeros == 2 {
			cancel()
		}
	}
	if after, err := w.process("a").wiper().Wipe(ctx, lunName); !errors.Is(err, context.Canceled) || after != 0 || w.lun.Status.Wipe.Problem != "" {
		t.Errorf("%v, %v, and the LUN says %q", after, err, w.lun.Status.Wipe.Problem)
	}
}

func TestTheErrorsOfTheAPIServerAreReturned(t *testing.T) {
	l := &v1alpha1.LUN{ObjectMeta: metav1.ObjectMeta{Name: lunName}}
	server := lagging.New(t, client.Object(l))
	o := Live{Reader: server.Live(), Status: server.Client()}
	if _, err := o.Read(t.Context(), "other"); !apierrors.IsNotFound(err) {
		t.Errorf("a LUN that is not there: %v", err)
	}
	had, err := o.Read(t.Context(), lunName)
	if err != nil || had.Name != lunName {
		t.Fatal(had, err)
	}
	old := had.DeepCopy()
	had.Status.State = v1alpha1.LUNAvailable
	if err := o.Replace(t.Context(), had); err != nil {
		t.Fatal(err)
	}
	if err := o.Replace(t.Context(), old); !apierrors.IsConflict(err) {
		t.Errorf("an old version was written: %v", err)
	}
}

func TestADeviceThatIsNotThereIsNotHeld(t *testing.T) {
	if d, err := (Kernel{}).Hold(provision.Content{Source: "/dev/none", Identity: identity}); err == nil || d != nil {
		t.Errorf("got %v, %v", d, err)
	}
}
