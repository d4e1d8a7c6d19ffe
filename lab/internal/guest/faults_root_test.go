//go:build root

package guest

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/lab/internal/network"
)

func TestAWatchdogThatIsNotFedResetsTheMachine(t *testing.T) {
	b := bootNode(t, 0)
	b.must(b.PowerOff(t.Context()))
	b.Spec.Resets = true
	b.must(b.save())
	b.on()
	before, pid := b.run("cat", "/proc/sys/kernel/random/boot_id"), b.PID()
	// To close the device without the letter V leaves the watchdog armed.
	b.run("sh", "-c", "modprobe softdog soft_margin=3 && : > /dev/watchdog")
	b.eventually("the machine has booted again", func() bool {
		after, err := b.Output(t.Context(), "cat", "/proc/sys/kernel/random/boot_id")
		return err == nil && strings.TrimSpace(string(after)) != before
	})
	if b.Power() != On || b.PID() != pid {
		t.Errorf("the machine is %s, process %d, was %d", b.Power(), b.PID(), pid)
	}
}

func TestAPauseIsSeenByTheClockOfTheBootUnlessItIsFrozen(t *testing.T) {
	b := bootNode(t, 0)
	const pause = 20 * time.Second
	uptime := func() time.Duration {
		first, _, _ := strings.Cut(b.run("cat", "/proc/uptime"), " ")
		seconds, err := strconv.ParseFloat(first, 64)
		b.must(err)
		return time.Duration(seconds * float64(time.Second))
	}
	for name, c := range map[string]struct {
		stop func() error
		seen bool
	}{
		"paused": {func() error { return b.Pause(t.Context()) }, true},
		"frozen": {func() error { return b.Freeze(t.Context()) }, false},
	} {
		before := uptime()
		b.must(c.stop())
		if b.Power() != Paused {
			t.Errorf("%s: the machine is %s", name, b.Power())
		}
		<-time.After(pause) // this is the fault itself
		b.must(b.Resume(t.Context()))
		if passed := uptime() - before; (passed >= pause) != c.seen {
			t.Errorf("%s: the guest's clock went on by %v in a pause of %v", name, passed, pause)
		}
	}
}

func TestTwoMachinesShareADisk(t *testing.T) {
	one := bootNode(t, 0)
	other, err := Create(t.Context(), filepath.Join(t.TempDir(), "node2"), Spec{Name: "node2", Image: image(t), CPUs: 1, Memory: 512 << 20})
	one.must(err)
	two := booted{Machine: other, t: t}
	t.Cleanup(func() {
		if err := other.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	two.on()
	shared := Disk{Name: "shared1", Size: 16 << 20, File: filepath.Join(t.TempDir(), "shared1.raw")}
	one.must(os.WriteFile(shared.File, nil, 0o600))
	one.must(os.Truncate(shared.File, shared.Size))
	device := shared.Device("")
	for _, b := range []booted{one, two} {
		b.must(b.AttachDisk(t.Context(), shared))
		b.eventually("the shared disk is there", func() bool { return b.succeeds("test", "-b", device) })
	}
	one.run("sh", "-c", "printf hello | dd of="+device+" conv=fsync,sync bs=4096 2>/dev/null")
	if got := two.run("sh", "-c", "dd if="+device+" iflag=direct bs=4096 count=1 2>/dev/null | head -c 5"); got != "hello" {
		t.Errorf("the other machine reads %q", got)
	}
	one.must(one.RemoveDisk(t.Context(), "shared1"))
	if info, err := os.Stat(shared.File); err != nil || info.Size() != shared.Size {
		t.Errorf("after the removal from one machine the file is %v, %v", info, err)
	}
	if !two.succeeds("test", "-b", device) {
		t.Error("the other machine has lost the disk, too")
	}
}

func TestALinkDelaysWhatAMachineSends(t *testing.T) {
	b := bootNode(t, 0)
	b.run(network.Link{Delay: 500 * time.Millisecond, Loss: 1}.Command(network.Interface)...)
	if got := b.run("tc", "qdisc", "show", "dev", network.Interface); !strings.Contains(got, "delay 500ms") || !strings.Contains(got, "loss 1%") {
		t.Errorf("the interface has %q", got)
	}
	b.run(network.Link{}.Command(network.Interface)...)
	if got := b.run("tc", "qdisc", "show", "dev", network.Interface); strings.Contains(got, "netem") {
		t.Errorf("after its end the interface has %q", got)
	}
}
