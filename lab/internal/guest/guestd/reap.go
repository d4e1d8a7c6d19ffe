package main

import (
	"os"

	"berth.dev/berth/lab/internal/guest/reaper"
)

// reap is process 1. A guest without guestd serve is useless: it powers off when reap
// returns, and the console log says why.
func reap() error {
	return reaper.Run(program, []string{"guestd", "serve"}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Env:   os.Environ(),
	})
}
