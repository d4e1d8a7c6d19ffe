package main

import (
	"fmt"
	"os"
	"testing"
)

// TestMain sets the logger up before a test starts what reads it, and may outlive the test.
func TestMain(m *testing.M) {
	if err := setUpLogging("info"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}
