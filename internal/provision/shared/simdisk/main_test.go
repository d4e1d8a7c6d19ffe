package simdisk_test

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// TestMain is also the main program of a process that plays a node.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BERTH_SIMDISK"); dir != "" {
		if err := writer(dir, os.Getenv("BERTH_NODE")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func contextOfProcess() context.Context { return context.Background() }
