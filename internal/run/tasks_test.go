package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

func TestCallerThatGivesUpLeavesTheChangeRunningToItsEnd(t *testing.T) {
	release := filepath.Join(t.TempDir(), "release")
	ctx, cancel := context.WithCancel(t.Context())
	var tasks run.Tasks
	var owner string // the output that the operation's owner received
	begun := make(chan struct{})

	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := run.Do(ctx, &tasks, func(context.Context) (string, error) {
			close(begun)
			out, err := run.Exec{}.Change(command("await", release))
			owner = string(out)
			return owner, err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the caller got %v, want its own context's error", err)
		}
	})
	<-begun
	cancel()
	wg.Wait()
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tasks.Wait()
	if owner != "finished" {
		t.Errorf("the command was not carried to its end: %q", owner)
	}
}

func TestOperationDoesNotSeeItsCallersEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var tasks run.Tasks
	begun, canceled := make(chan struct{}), make(chan struct{})
	var seen error
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = run.Do(ctx, &tasks, func(ctx context.Context) (int, error) {
			close(begun)
			<-canceled
			seen = ctx.Err()
			return 0, nil
		})
	})
	<-begun
	cancel()
	close(canceled)
	wg.Wait()
	tasks.Wait()
	if seen != nil {
		t.Errorf("the operation's context ended: %v", seen)
	}
}

func TestPanicInAnOperationIsItsCallersError(t *testing.T) {
	var tasks run.Tasks
	_, err := run.Do(t.Context(), &tasks, func(context.Context) (int, error) { panic("broken") })
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v, want the panic", err)
	}
	tasks.Wait()
}

func TestCounterCountsProcessesByOperation(t *testing.T) {
	var script runtest.Script
	script.Handle("lvcreate", runtest.Fixed(""))
	c := runtest.Count(&script)

	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { _, _ = c.Change(run.Command{Operation: "lvcreate"}) })
		wg.Go(func() { _, _ = c.Query(t.Context(), run.Command{Operation: "fullreport"}) })
	}
	wg.Wait()
	if got := c.Take(); got["lvcreate"] != 10 || got["fullreport"] != 10 {
		t.Errorf("counted %v, want 10 of each, failed ones too", got)
	}
	if got := c.Counts(); len(got) != 0 {
		t.Errorf("after Take the counts are %v, want none", got)
	}
	if len(script.Calls()) != 20 {
		t.Errorf("%d calls reached the script, want 20", len(script.Calls()))
	}
}
