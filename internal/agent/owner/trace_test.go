package owner_test

import (
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

var traced = flag.Bool("trace", false, "tell what the owners of each schedule do")

// log tells the story of a schedule.
func (m *machine) log() logr.Logger {
	if !*traced {
		return logr.Discard()
	}
	return funcr.New(func(_, args string) { fmt.Fprintln(os.Stdout, m.c.now, m.name, args) }, funcr.Options{Verbosity: 1})
}
