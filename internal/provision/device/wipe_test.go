package device_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/device/devicetest"
)

// deletedOn returns a machine with the disk of a deleted volume, and a node on it that does not
// run.
func deletedOn(t *testing.T) (*faulty, *node) {
	t.Helper()
	f := &faulty{Machine: disks()}
	n := f.again(t)
	f.WritePartition(n.create(t, id, pool("naa.a")).Content.Source, secret)
	n.delete(t, id)
	return f, n
}

func TestADeletedVolumeIsReportedUntilItIsWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := deletedOn(t)
		p := n.report(t, pool("naa.a"))
		if len(p.Wiping) != 1 || p.Wiping[0].ID != id || p.Total-p.Foreign-p.Wiping[0].Size != p.Free || p.Free != 0 || len(p.Volumes) > 0 {
			t.Errorf("reported %+v", p)
		}
		conformance.Watching(t, n.Run)
		synctest.Wait()
		if p := n.report(t, pool("naa.a")); !free(p) || len(p.Wiping) > 0 {
			t.Errorf("wiped, it is reported as %+v", p)
		}
	})
}

// The last moment: the provisioner is about to open the disk.
func TestOnlyTheRemnantOfADeletedVolumeIsWiped(t *testing.T) {
	for name, last := range map[string]func(*testing.T, *faulty){
		"the disk was cleared":                      func(_ *testing.T, f *faulty) { overwritten(f.Machine, "sda", "nvme0n1") },
		"a foreign program wrote the primary table": func(_ *testing.T, f *faulty) { put(f.Machine, "sda", theirs()[2:]) },
		"another volume was put on the disk": func(t *testing.T, f *faulty) {
			f.again(t).create(t, "pvc-other", pool("eui.c"))
			overwritten(f.Machine, "sda", "nvme0n1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, n := deletedOn(t)
				f.BeforeHold(func() {
					last(t, f)
					f.CrashAfter(0)
				})
				conformance.Watching(t, n.Run)
				synctest.Wait()
				if effects := f.Live(); effects != 0 {
					t.Errorf("there were %d tries to change a disk", effects)
				}
			})
		})
	}
}

func TestADiskWhosePartitionIsOpenIsWipedWhenItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := deletedOn(t)
		f.Reboot() // the kernel finds the partition again
		closed := f.Open("/dev/sda1")
		f.deaf = true
		n := f.again(t)
		conformance.Watching(t, n.Run)
		if synctest.Wait(); f.ReadPartition("/dev/sda1", len(secret)) != secret {
			t.Error("it was wiped while somebody had it open")
		}
		closed()
		<-time.After(time.Minute)
		if p := n.report(t, pool("naa.a")); !free(p) || f.Medium("sda").Used() {
			t.Errorf("a minute after it was closed it is reported as %+v", p)
		}
	})
}

// The wiping of a disk waits for the operation that has locked the disk.
func TestADiskIsNotWipedWhileItIsAskedForAsALoan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := deletedOn(t)
		_, err := n.Lend(t.Context(), []string{pool("naa.a").Name, pool("naa.b").Name}, func([]string) error {
			stop := conformance.Watching(t, n.Run)
			if synctest.Wait(); !f.Medium("sda").Used() {
				t.Error("it was wiped")
			}
			stop()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestAWipingThatTheEndOfAProcessInterruptedGoesOnWithTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := deletedOn(t)
		ctx, end := context.WithCancel(t.Context())
		f.fault = func(w what) error {
			if w == erased {
				end()
			}
			return nil
		}
		if err := n.Run(ctx); err != nil {
			t.Error(err)
		}
		if !f.Medium("sda").Used() {
			t.Error("it was not interrupted")
		}
		conformance.Watching(t, n.Run)
		if synctest.Wait(); f.Medium("sda").Used() {
			t.Error("it does not go on")
		}
	})
}

func TestADiskThatIsPulledWhileItIsWipedIsWipedWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := deletedOn(t)
		medium := f.Medium("sda")
		pulled := false
		f.fault = func(w what) error {
			if w == erased && !pulled {
				pulled = true
				f.Pull("sda")
				n.report(t, pool("naa.a"))
			}
			return nil
		}
		conformance.Watching(t, n.Run)
		synctest.Wait()
		f.Plug(devicetest.Disk("sda", "naa.a", diskSize), medium)
		n.report(t, pool("naa.a"))
		if synctest.Wait(); medium.Used() {
			t.Error("it is not wiped")
		}
	})
}

func TestARecordOfAWipingThatCannotBeWrittenEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := deletedOn(t)
		f.Plain("sda")
		failed := false
		f.fault = func(w what) error {
			if w == written && !failed {
				failed = true
				return errFaulty
			}
			return nil
		}
		conformance.Watching(t, n.Run)
		synctest.Wait()
		if p := n.report(t, pool("naa.a")); !strings.Contains(p.Problem, errFaulty.Error()) {
			t.Errorf("reported %+v", p)
		}
		<-time.After(10 * time.Minute) // it is tried again
		if p := n.report(t, pool("naa.a")); !free(p) {
			t.Errorf("then reported %+v", p)
		}
	})
}

// Discarded data counts as not wiped if the disk turns out to have lied.
func TestWipingProgressIsRecordedAtIntervalsAndOnlyIfItLasts(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*faulty)
		// records are written before the last step.
		records int
	}{
		"a disk that discards": {func(*faulty) {}, 0}, "a disk that is overwritten": {func(f *faulty) { f.Plain("sda") }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, n := deletedOn(t)
				tc.prepare(f)
				writes, before := 0, 0
				var shown string
				f.fault = func(w what) error {
					switch w {
					case written:
						writes++
					case erased:
						before, shown = writes, n.report(t, pool("naa.a")).Problem
					}
					return nil
				}
				conformance.Watching(t, n.Run)
				if synctest.Wait(); before != 5*tc.records {
					t.Errorf("%d blocks were written, want %d records of 5", before, tc.records)
				}
				if !strings.HasSuffix(shown, " 85% is done") {
					t.Errorf("before the last step it is reported as %q", shown)
				}
			})
		})
	}
}

func TestAWipingThatFailsIsSignalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := deletedOn(t)
		if _, err := f.Machine.Hold("sda"); err != nil {
			t.Fatal(err)
		}
		conformance.Watching(t, n.Run)
		<-time.After(time.Second)
		select { // take the signal of the beginning
		case <-n.Changed():
		default:
		}
		<-time.After(10 * time.Second) // it is tried again
		synctest.Wait()
		select {
		case <-n.Changed():
		default:
			t.Error("nothing was signalled")
		}
	})
}

func TestADiskThatIsUsedTwiceIsWipedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := disks()
		n := newNode(t, m)
		conformance.Watching(t, n.Run)
		for _, use := range []string{"first", "second"} {
			m.WritePartition(n.create(t, "pvc-"+use, pool("naa.a")).Content.Source, secret)
			n.delete(t, "pvc-"+use)
			if synctest.Wait(); m.Medium("sda").Used() {
				t.Fatalf("after the %s volume the disk was not wiped", use)
			}
		}
	})
}

// An overwrite that did nothing puts the earlier ones in doubt, and with them the record of
// progress, of this process or of the one before.
func TestADiskThatIgnoresAnOverwriteIsWipedFromItsBeginningAgain(t *testing.T) {
	// The provisioner records its progress after the second of its five overwrites.
	for name, tc := range map[string]struct{ ends, ignored int }{
		"after the process recorded the progress": {0, 4}, // the process makes four overwrites, and the disk ignores the last one
		"after a restart of the process":          {3, 1}, // the process ends after three, and the disk ignores the first one of the next process
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, _ := deletedOn(t)
				f.Plain("sda")
				for at := mib; at < mib+room; at += mib {
					f.WriteDisk("sda", at, secret)
				}
				f.wipeUntil(t, tc.ends, func() {})
				f.wipeUntil(t, tc.ignored, func() { f.Lie("sda", true) })
				f.Lie("sda", false)
				f.WriteDisk("sda", mib, secret) // which the disk had only said to overwrite
				conformance.Watching(t, f.again(t).Run)
				if synctest.Wait(); f.Medium("sda").Used() {
					t.Error("the disk is not empty")
				}
			})
		})
	}
}

// wipeUntil runs a process, calls last before an overwrite, and ends the process after that
// overwrite. It counts the overwrites from 1; 0 runs no process.
func (f *faulty) wipeUntil(t *testing.T, overwrite int, last func()) {
	t.Helper()
	if overwrite == 0 {
		return
	}
	ctx, end := context.WithCancel(t.Context())
	f.fault = func(w what) error {
		if w == erased {
			if overwrite--; overwrite == 0 {
				last()
				end()
			}
		}
		return nil
	}
	if err := f.again(t).Run(ctx); err != nil {
		t.Error(err)
	}
	f.fault = nil
}
