package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// options are the options of the command line.
type options struct {
	volumes, rounds, atOnce int
	idleVolumes             int
	idleFor, statsFor       time.Duration
	guest                   bool
	root, out               string
}

// few returns the number of volumes for the operations other than create, one after the
// other: with all volumes they would take hours.
func (o options) few() int { return max(o.rounds, o.volumes/8) }

// most is how long the whole run may take.
const most = 2 * time.Hour

func main() {
	var o options
	flag.IntVar(&o.volumes, "n", 100, "volumes that each side makes one after the other; other operations are on fewer")
	flag.IntVar(&o.rounds, "rounds", 4, "rounds in which that is done: all sides in each round")
	flag.IntVar(&o.atOnce, "at-once", 8, "operations at once, where it is not one after the other")
	flag.IntVar(&o.idleVolumes, "idle-volumes", 200, "volumes of a node that is idle")
	flag.DurationVar(&o.idleFor, "idle-for", time.Minute, "how long to look at it")
	flag.DurationVar(&o.statsFor, "stats-for", 3*time.Second, "how long to ask for statistics in each round")
	flag.BoolVar(&o.guest, "in-guest", false, "be the half that overwrites /dev/sda to /dev/sdc, and print what it measured")
	flag.StringVar(&o.root, "root", ".", "the repository")
	flag.StringVar(&o.out, "out", filepath.Join("docs", "benchmarks"), "where the results go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := carryOut(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-local:", err)
		os.Exit(1)
	}
}

func carryOut(ctx context.Context, o options) error {
	if o.rounds < 1 || o.volumes < o.rounds || o.atOnce < 1 || o.idleVolumes < 1 {
		return errors.New("-rounds, -at-once and -idle-volumes are at least 1, and -n at least the number of rounds")
	}
	if !o.guest {
		return runHost(ctx, o)
	}
	r, err := measureGuest(ctx, o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// progress tells the user how far the run is.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "==> "+format+"\n", args...)
}
