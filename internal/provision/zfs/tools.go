package zfs

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/run"
)

// series of a version: 2.1 of zfs-2.1.11-1. Within a series the programs of ZFS are
// compatible with its module. Across series a command may fail for reasons that it cannot name.
var series = regexp.MustCompile(`^(?:zfs-)?(\d+\.\d+)\b`)

// checkTools finds out whether the programs of ZFS go with the kernel's module, once
// for each module that was loaded, and again while the programs do not run. On a machine
// without zpools it asks nothing.
func (r *reader) checkTools(ctx context.Context) {
	module := r.config.Devices.Module()
	if !r.state.beginCheck(module) {
		return
	}
	out, err := r.ask(ctx, r.tool.Command("version"), r.state.endCheck)
	switch {
	case ctx.Err() != nil: // the caller gave up
	case err != nil:
		r.settleFit("", fmt.Sprintf("the programs of ZFS do not run here: %v", err))
	default:
		r.settleFit(module, misfit(string(out), module))
	}
}

func (r *reader) settleFit(module, problem string) {
	if r.state.fit(module, problem) {
		r.engine.Changed.Set()
	}
}

// misfit says why programs of a version, as they print it, do not go with a module; empty
// if they do.
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

// ask runs a query. ended is called when its process is gone, which may be long after the
// timeout.
func (r *reader) ask(ctx context.Context, c run.Command, ended func()) ([]byte, error) {
	left := false
	out, err := engine.Ask(ctx, r.config.Runner, c, queryTimeout, func() func() {
		left = true
		return ended
	})
	if !left {
		ended()
	}
	return out, err
}

// fitness holds the facts about the programs of ZFS.
type fitness struct {
	// module that they were compared with last; empty if they did not run.
	module string
	// problem is empty, or says why they must not change anything.
	problem string
	// asking is set while the query for their version has no answer.
	asking bool
}

// beginCheck says whether the programs are to be compared with a module.
func (s *state) beginCheck(module string) bool {
	s.Lock()
	defer s.Unlock()
	if len(s.Units()) == 0 || s.tools.asking || s.tools.module == module {
		return false
	}
	s.tools.asking = true
	return true
}

func (s *state) endCheck() {
	s.Lock()
	defer s.Unlock()
	s.tools.asking = false
}

// fit takes in the result of a check, and says whether that is news.
func (s *state) fit(module, problem string) (news bool) {
	s.Lock()
	defer s.Unlock()
	news = s.tools.problem != problem
	s.tools.module, s.tools.problem = module, problem
	for _, z := range s.Units() {
		z.Unfit = problem
	}
	return news
}
