package blockdevtest

import (
	"os"
	"strings"
	"testing"
)

// DisksVariable names the disks that platform tests may overwrite, with commas.
const DisksVariable = "BERTH_TEST_DISKS"

// Disks returns the disks that a test may overwrite; it fails without them.
func Disks(t testing.TB, n int) []string {
	t.Helper()
	disks := strings.FieldsFunc(os.Getenv(DisksVariable), func(r rune) bool { return r == ',' })
	if len(disks) < n || os.Geteuid() != 0 {
		t.Fatalf("this test overwrites disks: run it as root in a machine of its own and name %d disks in %s", n, DisksVariable)
	}
	return disks[:n]
}
