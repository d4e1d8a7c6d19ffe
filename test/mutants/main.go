package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
)

// options of a run.
type options struct {
	packages *regexp.Regexp
	places   *regexp.Regexp
	sample   int
	seed     uint64
	jobs     int
	with     *regexp.Regexp
	verbose  bool
	out      io.Writer
}

func main() {
	var o options
	packages := flag.String("packages", "", "regular expression of the packages; all if empty")
	places := flag.String("files", "", "regular expression of the changes to try, such as 'pack.go:|fit.go:8.$': it matches a file and a line; all if empty")
	flag.IntVar(&o.sample, "sample", 0, "how many changes to try of each package, chosen by the seed; 0 for all")
	flag.Uint64Var(&o.seed, "seed", 1, "for the sample")
	flag.IntVar(&o.jobs, "jobs", 2, "how many tests run at a time")
	with := flag.String("with", "", "regular expression of the other packages whose tests are run too; all that the target names, if empty, and none if '^$'")
	flag.BoolVar(&o.verbose, "v", false, "tell of each change")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.out = os.Stdout
	var err error
	for text, e := range map[*string]**regexp.Regexp{packages: &o.packages, places: &o.places, with: &o.with} {
		if *e, err = regexp.Compile(*text); err != nil {
			break
		}
	}
	if err == nil {
		err = tryAll(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// tryAll tries the changes of all chosen packages.
func tryAll(ctx context.Context, o options) error {
	known, err := readSurvivors("test/mutants/survivors.txt")
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range targets {
		if !o.packages.MatchString(t.dir) {
			continue
		}
		if err := tryPackage(ctx, o, t, known); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", t.dir, err))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return errors.Join(failed...)
}

// tryPackage tries the changes of one package, and compares the survivors with the list.
func tryPackage(ctx context.Context, o options, t target, known survivors) error {
	t.with = slices.DeleteFunc(slices.Clone(t.with), func(dir string) bool { return !o.with.MatchString(dir) })
	code, err := load(ctx, t)
	if err != nil {
		return err
	}
	all := code.mutants()
	chosen := choose(all, o)
	tests, err := build(ctx, code, all)
	if err != nil {
		return err
	}
	defer tests.remove()
	lived, err := tests.run(ctx, o, chosen)
	if err != nil {
		return err
	}
	unknown, stale := known.compare(t.dir, all, chosen, lived)
	fmt.Fprintf(o.out, "%s: %d of %d changes tried, %d caught, %d live as listed, %d live unlisted\n",
		t.dir, len(chosen), len(all), len(chosen)-len(lived), len(lived)-len(unknown), len(unknown))
	for _, m := range unknown {
		fmt.Fprintf(o.out, "%s\n\t%s:%d\n", m.key(), m.file, m.line)
	}
	for _, key := range stale {
		fmt.Fprintf(o.out, "stale: %s\n", key)
	}
	if len(unknown)+len(stale) > 0 {
		return fmt.Errorf("%d changes live that are not in survivors.txt, %d entries of it are stale", len(unknown), len(stale))
	}
	return nil
}

// choose draws the sample from the changes at the chosen places, in the order of the code.
func choose(all []*mutant, o options) []*mutant {
	chosen := slices.DeleteFunc(slices.Clone(all), func(m *mutant) bool {
		return !o.places.MatchString(fmt.Sprintf("%s:%d", m.file, m.line))
	})
	if o.sample == 0 || o.sample >= len(chosen) {
		return chosen
	}
	draw := rand.New(rand.NewPCG(o.seed, 0))
	draw.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	chosen = chosen[:o.sample]
	slices.SortFunc(chosen, func(a, b *mutant) int { return a.number - b.number })
	return chosen
}
