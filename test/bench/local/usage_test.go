package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestAProcessIsSeenToUseMemoryAndTheProcessor(t *testing.T) {
	before, err := usedBy(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var after used
	for x := 1.0; after.processor <= before.processor; x = x*1.0001 + 1 {
		if after, err = usedBy(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if after.resident < 1<<20 || after.anonymous <= 0 || after.anonymous > after.resident {
		t.Errorf("used are %+v", after)
	}
	if _, err := usedBy(1 << 30); err == nil {
		t.Error("a process that is not there uses something")
	}
}

// The test's own program takes the place of the measured programs.
func TestMain(m *testing.M) {
	switch os.Getenv("BENCH_LOCAL_TEST_ROLE") {
	case "wait":
		<-time.After(time.Minute) // the test ends it long before
		os.Exit(0)
	case "fail":
		_, _ = os.Stderr.WriteString("no such socket")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func TestAProgramRunsAsLongAsItIsNeeded(t *testing.T) {
	t.Setenv("BENCH_LOCAL_TEST_ROLE", "wait")
	seen := 0
	err := withProgram(t.Context(), []string{os.Args[0]}, func(_ context.Context, pid int) error {
		seen = pid
		_, err := usedBy(pid)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := usedBy(seen); err == nil {
		t.Error("it still runs")
	}
}

func TestAProgramThatEndsTooEarlyIsAnErrorWithItsWords(t *testing.T) {
	t.Setenv("BENCH_LOCAL_TEST_ROLE", "fail")
	err := withProgram(t.Context(), []string{os.Args[0]}, func(ctx context.Context, _ int) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "no such socket") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("ended with %v", err)
	}
	wrong := errors.New("wrong")
	t.Setenv("BENCH_LOCAL_TEST_ROLE", "wait")
	if err := withProgram(t.Context(), []string{os.Args[0]}, func(context.Context, int) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("ended with %v", err)
	}
}
