package released

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// free is what a wipe is to leave behind.
func (w *world) free() {
	w.t.Helper()
	if now := w.lun.Status.Wipe; now.Node != "" || now.Outcome != v1alpha1.LUNCleared || !w.blank() {
		w.t.Errorf("the LUN says %+v, and the disk is blank: %v", now, w.blank())
	}
	for _, node := range []string{"a", "b", "c"} {
		if v, err := w.target.Node(node).Look(w.t.Context(), w.disk()); err != nil || v.Link == ownership.Attached && (!v.Holder.IsLeftByWipe() || v.Holding || node == "a") {
			w.t.Errorf("node %s has the disk: %+v, %v", node, v, err)
		}
	}
}

func TestADiskIsWipedAndLetGo(t *testing.T) {
	for _, thin := range []bool{false, true} {
		w := newWorld(t)
		w.thin = thin
		if err := w.process("a").lives(); err != nil {
			t.Fatal(err)
		}
		w.free()
		if w.zeros != size/unit {
			t.Errorf("thin %v: %d ranges were zeroed", thin, w.zeros)
		}
	}
}

// The agent, or its machine, dies before or after each effect. What is recorded meanwhile is compared with the
// disk at each write.
func TestADeathAtAnyEffectIsMadeUpFor(t *testing.T) {
	for name, p := range map[string]process{
		"agent before": {}, "agent after": {after: true}, "machine before": {reboots: true}, "machine after": {after: true, reboots: true},
	} {
		for _, thin := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, thin %v", name, thin), func(t *testing.T) {
				for cut := 1; ; cut++ {
					w := newWorld(t)
					w.settles("b", tenancy, 0) // the volume's last reservation was not cleared
					if err := w.target.Crash("b"); err != nil {
						t.Fatal(err)
					}
					w.thin = thin
					a := w.process("a")
					a.dies, a.after, a.reboots = cut, p.after, p.reboots
					if err := a.lives(); err != nil {
						t.Fatalf("cut %d: %v", cut, err)
					}
					w.free()
					if a.dies != 0 {
						if cut < 40 {
							t.Errorf("a wipe takes %d effects", cut)
						}
						return
					}
				}
			})
		}
	}
}

// A node that the record calls gone is still attached and registered, and writes before each effect, and afterwards. Its
// machine may have been suspended, and its Node deleted: then the record has it gone without a word of its own.
func TestALateWriterIsShutOutFromTheWipeOn(t *testing.T) {
	w := newWorld(t)
	late := w.settles("b", tenancy, 0)
	var accepted, refused int
	w.before = func(string, int) {
		switch err := late.writes((accepted+refused)%size, "late"); {
		case err == nil:
			accepted++
		case errors.Is(err, provision.ErrConflict):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if err := w.process("a").lives(); err != nil {
		t.Fatal(err)
	}
	w.free()
	if accepted == 0 || accepted > 10 || refused < 20 {
		t.Errorf("%d writes were accepted, and %d refused", accepted, refused)
	}
	if err := late.writes(0, "secret"); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("it writes to a LUN that is free: %v", err)
	}
	w.free()
	w.before = nil
	next := w.settles("c", v1alpha1.Epoch{Number: 2, ID: "next"}, w.leftByWipe("c"))
	if err := next.writes(0, "precious"); err != nil {
		t.Errorf("the next volume cannot write: %v", err)
	}
	if err := late.writes(0, "secret"); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("it writes to the next volume: %v", err)
	}
}

// No node of a volume has taken the disk since the last wipe.
func TestADiskThatAnEarlierWipeLeftReservedIsWipedAgain(t *testing.T) {
	w := newWorld(t)
	check(t, w.process("a").lives())
	w.leftByWipe("c")
	w.order("b", v1alpha1.Epoch{Number: 9, ID: "again"})
	check(t, w.process("b").lives())
	w.leftByWipe("c")
	if now := w.lun.Status.Wipe; now.Outcome != v1alpha1.LUNCleared || now.Node != "" {
		t.Errorf("the LUN says %+v", now)
	}
}

// The node sleeps before each effect. Meanwhile it is given up, another node wipes the disk, and a volume gets
// it and writes. Then the node wakes.
func TestANodeThatSleptHarmsNoLaterVolume(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		a := w.process("a")
		var next *tenant
		w.before = func(node string, effect int) {
			if node != "a" || effect != at || next != nil {
				return
			}
			w.order("b", v1alpha1.Epoch{Number: 9, ID: "again"})
			if err := w.process("b").lives(); err != nil {
				t.Fatal(err)
			}
			w.lun.Status = v1alpha1.LUNStatus{State: v1alpha1.LUNAvailable}
			w.touch()
			next = w.settles("c", v1alpha1.Epoch{Number: 2, ID: "next"}, w.leftByWipe("c"))
			if err := next.writes(0, "precious"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.wiper().Wipe(t.Context(), lunName); next == nil {
			if err != nil || at < 40 {
				t.Errorf("a wipe takes %d effects: %v", at, err)
			}
			return
		}
		if string(w.data[:8]) != "precious" {
			t.Errorf("effect %d: the next volume's data is gone", at)
		}
		if err := next.writes(8, "more"); err != nil {
			t.Errorf("effect %d: the next volume cannot write: %v", at, err)
		}
		if v, err := next.node.Look(t.Context(), w.disk()); err != nil || !v.Holding {
			t.Errorf("effect %d: the next volume lost its reservation: %+v, %v", at, v, err)
		}
	}
}

// Another device takes the disk's place before each effect. At most the write that was proved is on its way.
func TestADeviceOfAnotherIdentityIsNotWiped(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		before, replaced := 0, false
		w.before = func(_ string, effect int) {
			if effect == at && !replaced {
				replaced, before = true, w.zeros
				if err := w.target.Replace("wwn:other"); err != nil {
					t.Fatal(err)
				}
			}
		}
		_, err := w.process("a").wiper().Wipe(t.Context(), lunName)
		if !replaced {
			return
		}
		if w.zeros > before+1 {
			t.Errorf("effect %d: %d ranges of another device are zeroed", at, w.zeros-before)
		}
		if w.lun.Status.Wipe.Node != "" && (err == nil || !strings.Contains(w.lun.Status.Wipe.Problem, "wwn:other")) {
			t.Errorf("effect %d: %v, and the LUN says %q", at, err, w.lun.Status.Wipe.Problem)
		}
	}
}

func TestNotOneByteIsWrittenWhereTheWipeIsNotAllowed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *world)
		says   string
	}{
		"a holder of whom the LUN does not know": {func(w *world) { w.settles("c", v1alpha1.Epoch{Number: 1, ID: "unknown"}, 0) }, "reserved under the key"},
		"a later epoch of the same volume":       {func(w *world) { w.settles("b", v1alpha1.Epoch{Number: 9, ID: "later"}, 0) }, "reserved under the key"},
		"no share of the disk is left":           {func(w *world) { w.target = noShares(w.t) }, "attaching the disk failed"},
		"the LUN is being deleted":               {func(w *world) { leaving(&w.lun) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			before := slices.Clone(w.data)
			if err := w.process("a").lives(); err != nil {
				t.Fatal(err)
			}
			if now := w.lun.Status.Wipe; !slices.Equal(before, w.data) || now.Node != "" || now.Outcome == v1alpha1.LUNCleared || !strings.Contains(now.Problem, tc.says) {
				t.Errorf("%+v, and the data is the same: %v", now, slices.Equal(before, w.data))
			}
		})
	}
}

// A device that a process has open is not registered, and so not wiped, until it is closed.
func TestADeviceThatIsOpenIsNotWiped(t *testing.T) {
	w := newWorld(t)
	a := w.process("a")
	if err := a.node.Attach(t.Context(), w.disk()); err != nil {
		t.Fatal(err)
	}
	open := must(a.node.Open(ownershipless))
	after, err := a.wiper().Wipe(t.Context(), lunName)
	if !errors.Is(err, provision.ErrInUse) || after != again || w.zeros != 0 || !strings.Contains(w.lun.Status.Wipe.Problem, "open") {
		t.Errorf("%v, %v, %d ranges are zeroed, and the LUN says %q", after, err, w.zeros, w.lun.Status.Wipe.Problem)
	}
	open.Close()
	if err := a.lives(); err != nil {
		t.Fatal(err)
	}
	w.free()
}

// Progress counts as long as the disk has this wipe's key.
func TestAWipeGoesOnWhereItStoppedAndBeginsAnewAfterAnotherHolder(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(w *world)
		zeros     int // of the second attempt, at most and at least
	}{
		"nothing happened":      {func(*world) {}, 2},
		"the session is a new":  {func(w *world) { check(w.t, w.target.Relogin("a")) }, 2},
		"the target lost power": {func(w *world) { check(w.t, w.target.Restart()) }, 2},
		"another node took the disk": {func(w *world) {
			v, err := w.target.Node("a").Look(w.t.Context(), w.disk())
			check(w.t, err)
			check(w.t, w.settles("b", tenancy, v.Holder).writes(0, "again"))
		}, 8},
		"the reservation was given up": {func(w *world) { check(w.t, w.target.Node("a").Register(w.t.Context(), w.disk(), 0, shared.Idle)) }, 8},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.process("a")
			w.before = func(string, int) {
				if w.lun.Status.Wipe.Done == 6*unit {
					a.dead = true
				}
			}
			if _, err := a.wiper().Wipe(t.Context(), lunName); !a.dead {
				t.Fatal(err)
			}
			a.ends()
			w.before, a.dead = nil, false
			before := w.zeros
			tc.meanwhile(w)
			if err := a.lives(); err != nil {
				t.Fatal(err)
			}
			if w.free(); w.zeros-before != tc.zeros {
				t.Errorf("%d ranges were zeroed again", w.zeros-before)
			}
		})
	}
}

// A disk that grows while it is wiped is wiped again.
func TestADiskThatGrowsMeanwhileIsWipedToItsEnd(t *testing.T) {
	w := newWorld(t)
	grown := false
	w.before = func(string, int) {
		if w.zeros == 5 && !grown {
			grown = true
			w.data = append(w.data, []byte("old data of the target's")...)
		}
	}
	a := w.process("a")
	if after, err := a.wiper().Wipe(t.Context(), lunName); !errors.Is(err, provision.ErrUnavailable) || after != again || !strings.Contains(w.lun.Status.Wipe.Problem, "it is wiped again") {
		t.Errorf("%v, %v, and the LUN says %q", after, err, w.lun.Status.Wipe.Problem)
	}
	if err := a.lives(); err != nil {
		t.Fatal(err)
	}
	w.free()
}

// ofTheVolume has the sign of the volume's own filesystem.
func (w *world) ofTheVolume() {
	w.data = make([]byte, 16<<20)
	copy(w.data[5<<20:], "secret")
	mark := `Berth is making a filesystem here
{"volume":"vol","epoch":{"Number":7,"ID":"tenant"}}`
	copy(w.data[15<<20:], mark)
	w.lun.Status.Wipe.Mode = v1alpha1.Filesystem
}

func TestADiskWithAFilesystemIsWipedOnlyIfItWasTheVolumes(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *world)
		wiped  bool
	}{
		"the volume's own mark":    {func(*world) {}, true},
		"zeros at both ends":       {func(w *world) { clear(w.data[15<<20:]) }, true},
		"it has shown that before": {func(w *world) { w.lun.Status.Wipe.Proved = true; clear(w.data[15<<20:]); copy(w.data, "anything") }, true},
		"another volume's mark":    {func(w *world) { w.lun.Status.Volume.Name = "other" }, false},
		"the mark of another life": {func(w *world) { w.lun.Status.Wipe.Keys = w.lun.Status.Wipe.Keys[1:] }, false},
		"other data":               {func(w *world) { clear(w.data[15<<20:]); copy(w.data, "the books of the company") }, false},
		"another filesystem":       {func(w *world) { clear(w.data[15<<20:]); copy(w.data[1080:], "\x53\xef") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ofTheVolume()
			tc.change(w)
			before := slices.Clone(w.data)
			a := w.process("a")
			if err := a.lives(); err != nil {
				t.Fatal(err)
			}
			if tc.wiped {
				w.free()
				return
			}
			if now := w.lun.Status.Wipe; !slices.Equal(before, w.data) || now.Outcome != v1alpha1.LUNWipeFailed || !strings.Contains(now.Problem, "did not put there") {
				t.Errorf("%+v, and the data is the same: %v", now, slices.Equal(before, w.data))
			}
		})
	}
}

// The sign goes with the first bytes that are wiped. A death after that is made up for all the same.
func TestADeathInTheMiddleOfAFilesystemIsMadeUpFor(t *testing.T) {
	for _, reboots := range []bool{false, true} {
		for cut := 1; ; cut += 7 {
			w := newWorld(t)
			w.ofTheVolume()
			a := w.process("a")
			a.dies, a.after, a.reboots = cut, true, reboots
			if err := a.lives(); err != nil {
				t.Fatalf("cut %d: %v", cut, err)
			}
			if w.free(); a.dies != 0 {
				break
			}
		}
	}
}
