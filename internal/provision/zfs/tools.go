package zfs

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"berth.dev/berth/internal/run"
)

// series of a version: 2.1 of zfs-2.1.11-1. ZFS keeps its programs and its module
// compatible within one. Across them a command may fail for reasons that it cannot name.
var series = regexp.MustCompile(`^(?:zfs-)?(\d+\.\d+)\b`)

// checkTools finds out whether the programs of ZFS go with the kernel's module, once
// for each module that was loaded, and again while they do not run. A machine without
// zpools is not asked.
func (p *Provisioner) checkTools(ctx context.Context) {
	module := p.config.Devices.Module()
	if !p.state.beginCheck(module) {
		return
	}
	out, err := p.ask(ctx, p.config.command("version"), p.state.endCheck)
	switch {
	case ctx.Err() != nil: // it was the caller's
	case err != nil:
		p.settleFit("", fmt.Sprintf("the programs of ZFS do not run here: %v", err))
	default:
		p.settleFit(module, misfit(string(out), module))
	}
}

func (p *Provisioner) settleFit(module, problem string) {
	if p.state.fit(module, problem) {
		p.signal()
	}
}

// misfit is empty if programs of a version, as they print it, go with a module.
func misfit(printed, module string) string {
	line, _, _ := strings.Cut(printed, "\n")
	tools := strings.TrimPrefix(strings.TrimSpace(line), "zfs-")
	have, need := series.FindStringSubmatch(tools), series.FindStringSubmatch(module)
	if have != nil && need != nil && have[1] == need[1] {
		return ""
	}
	return fmt.Sprintf("the programs of ZFS here are of version %s and do not go with the kernel's module %s: run an agent with programs of the same series (the first two numbers)",
		tools, module)
}

// ask runs a query. A process that cannot be killed, because the kernel does not let
// it go, is left behind; ended is called when it is gone.
func (p *Provisioner) ask(ctx context.Context, c run.Command, ended func()) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.QueryTimeout, errNoAnswer) // canceled by the reader
	type result struct {
		out []byte
		err error
	}
	answer := make(chan result, 1)
	go func() {
		defer cancel()
		out, err := p.config.Runner.Query(ctx, c)
		ended()
		answer <- result{out, err}
	}()
	select {
	case got := <-answer:
		return got.out, got.err
	case <-ctx.Done():
		select { // the end of the query is the end of the context, too
		case got := <-answer:
			return got.out, got.err
		default:
			return nil, context.Cause(ctx)
		}
	}
}

// fitness is what is known of the programs of ZFS.
type fitness struct {
	// module that they were held against last; empty if they never ran.
	module string
	// problem is empty, or says why they must not change anything.
	problem string
	// asking is set while a question has no answer.
	asking bool
}

// beginCheck says whether the programs are to be held against a module.
func (s *state) beginCheck(module string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.zpools) == 0 || s.tools.asking || s.tools.module == module {
		return false
	}
	s.tools.asking = true
	return true
}

func (s *state) endCheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools.asking = false
}

// fit takes in what came of a check, and says whether that is news.
func (s *state) fit(module, problem string) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.tools.problem != problem
	s.tools.module, s.tools.problem = module, problem
	for _, z := range s.zpools {
		z.unfit = problem
	}
	return news
}
