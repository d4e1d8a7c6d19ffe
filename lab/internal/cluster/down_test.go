package cluster

import (
	"os"
	"testing"

	"berth.dev/berth/lab/internal/process"
)

func TestTheCommandNeverEndsItself(t *testing.T) {
	inside, err := process.InNamespace("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	before := len(inside)
	left := others(inside)
	for _, r := range left {
		if r.PID == os.Getpid() {
			t.Error("the process that asks is among those to be ended")
		}
	}
	if len(left) != before-1 {
		t.Errorf("%d of %d processes are left, want all but one", len(left), before)
	}
}
