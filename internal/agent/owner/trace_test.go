package owner_test

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

func (m *machine) log() logr.Logger {
	if !traced {
		return logr.Discard()
	}
	return funcr.New(func(_, args string) { fmt.Println(m.name, m.c.now, args) }, funcr.Options{Verbosity: 2})
}

func (c *cluster) trace(format string, args ...any) {
	if traced {
		fmt.Printf(format+"\n", args...)
	}
}

var traced = false
