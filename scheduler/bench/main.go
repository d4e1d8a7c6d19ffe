package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/scheduler/internal/controlplane"
)

// options are those of the command line.
type options struct {
	sizes  sizes
	rounds int
	// during is how long the rounds may take altogether.
	during time.Duration
	sides  *regexp.Regexp
	root   string
	out    string
	// factor multiplies the numbers of pods.
	factor float64
	// keep is where logs and profiles stay; empty removes them.
	keep string
	// profile takes a processor profile of every scheduler into keep.
	profile bool
}

// sizes are numbers of nodes, ascending.
type sizes []int

func (s *sizes) String() string { return strings.Trim(fmt.Sprint(*s), "[]") }

func (s *sizes) Set(text string) error {
	*s = nil
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 || len(*s) > 0 && n <= (*s)[len(*s)-1] {
			return fmt.Errorf("%q is not an ascending list of numbers of nodes, like 1000,5000", text)
		}
		*s = append(*s, n)
	}
	return nil
}

func main() {
	controlplane.RunScheduler()
	o := options{sizes: sizes{1000, 5000}}
	var sides string
	flag.Var(&o.sizes, "nodes", "numbers of nodes, ascending, separated by commas")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each scheduler is measured")
	flag.DurationVar(&o.during, "for", 26*time.Minute, "begin no round that would end later than that; each number of nodes gets its share, and one round")
	flag.StringVar(&sides, "only", "", "regular expression: measure only what it matches, like 'claim|inline'")
	flag.Float64Var(&o.factor, "pods", 1, "multiplies the numbers of pods")
	flag.StringVar(&o.root, "root", ".", "the repository")
	flag.StringVar(&o.out, "out", filepath.Join("docs", "benchmarks"), "where the results go")
	flag.StringVar(&o.keep, "keep", "", "directory in which logs stay")
	flag.BoolVar(&o.profile, "profile", false, "keep profiles of each scheduler, and what it and the API server count, in -keep")
	flag.Parse()
	var err error
	if o.sides, err = regexp.Compile(sides); err == nil && (o.profile && o.keep == "" || o.rounds < 1) {
		err = errors.New("-profile needs -keep, and -rounds is at least 1")
	}
	if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-scheduling:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Hour)
	defer cancel()
	begun := time.Now()
	r := results{options: o}
	if err := r.measureAll(ctx); err != nil {
		return err
	}
	if err := r.measureLedger(ctx); err != nil {
		return err
	}
	r.took = time.Since(begun)
	return r.write()
}
