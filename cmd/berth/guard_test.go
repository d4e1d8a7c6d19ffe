package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/guard/watchdog"
)

func TestAGuardNamesTheFlagThatIsWrong(t *testing.T) {
	for _, f := range []guardFlags{{socket: "/run/x"}, {node: "n1", socket: "x"}, {node: "n1", socket: "/run/x", kubeconfig: "/nowhere/kubeconfig"}} {
		if err := f.run(t.Context()); err == nil || !strings.Contains(err.Error(), "--") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestAGuardWithNothingOpenEndsWhenItIsAsked(t *testing.T) {
	dir := t.TempDir()
	keeper, err := keep.New(keep.Config{
		Boot: "boot", Now: func() time.Duration { return time.Hour }, Store: keep.File(filepath.Join(dir, "state")),
		Watchdog: watchdog.New(filepath.Join(dir, "watchdog0")), Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := unfenced(keeper); err == nil {
		t.Error("a guard without the agent's word is ready")
	}
	ctx, ask := context.WithCancel(t.Context())
	served := false
	go ask()
	err = guard(ctx, keeper, func(ctx context.Context) error {
		<-ctx.Done()
		served = true
		return nil
	})
	if err != nil || !served {
		t.Errorf("%v, served to the end: %v", err, served)
	}
}
