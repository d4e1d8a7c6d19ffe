package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serve()
	case os.Getpid() != 1:
		err = fmt.Errorf("usage: guestd is started by the kernel of a guest")
	case len(os.Args) == 2 && os.Args[1] == "init":
		err = reap()
	default:
		err = enterRoot()
	}
	if err == nil {
		return
	}
	logf("fatal: %v", err)
	if os.Getpid() == 1 {
		powerOff()
	}
	os.Exit(1)
}

// logf writes a line to the console.
func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "guestd: "+format+"\n", args...)
}

// powerOff ends the guest; it does not return.
func powerOff() {
	syscall.Sync()
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // the kernel is stopping
}
