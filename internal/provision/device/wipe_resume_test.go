package device_test

import (
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device/devicetest"
)

// A disk that has to be overwritten whole is wiped in the end, however often its node restarts.
func TestAfterARestartWipingGoesOnBehindTheRecordedProgress(t *testing.T) {
	const size, perLife = 96 * mib, 40 // effects: each record takes some of them
	m := devicetest.NewMachine(devicetest.Disk("sda", "naa.a", size))
	m.Plain("sda")
	n := start(t, m)
	m.WritePartition(n.create(t, id, pool("naa.a")).Content.Source, secret)
	m.CrashAfter(perLife)
	n.delete(t, id)
	lives := 1
	for ; lives < 20; lives++ {
		n.await(t, pool("naa.a"), "the end of the wiping", func(p *provision.Pool) bool { return free(p) || strings.Contains(p.Problem, "failed") })
		if !m.Medium("sda").Used() {
			break
		}
		n.stop()
		m.Live()
		m.CrashAfter(perLife)
		n = start(t, m)
	}
	if lives < 3 || lives == 20 {
		t.Errorf("after %d lives the disk is empty: %v", lives, !m.Medium("sda").Used())
	}
}
