package keep

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Boot returns the id of this boot of the machine.
func Boot() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// Now returns the time since the machine has booted. It counts while the machine sleeps, which the
// clock of a process does not.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // Linux has had this clock since 2.6.39
	}
	return time.Duration(t.Nano())
}
