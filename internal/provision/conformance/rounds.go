package conformance

import (
	"os"
	"strconv"
	"testing"
)

// RoundsVariable is the environment variable that says how often tests on real disks repeat
// a check that must hold each time; 5 times by default.
const RoundsVariable = "BERTH_TEST_ROUNDS"

// Rounds returns how often to repeat.
func Rounds(t testing.TB) int {
	t.Helper()
	text := os.Getenv(RoundsVariable)
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: it must be a number from 1", RoundsVariable, text)
	}
	return n
}
