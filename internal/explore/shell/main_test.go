package shell

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	// A bubble's goroutines take turns, and a second processor only makes them wait for each other. The heap is small,
	// and most of it is garbage.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(1000)
	os.Exit(m.Run())
}
