package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

// skip is a spec that is not run, and why.
type skip struct{ pattern, reason string }

//go:embed skipped.txt
var skipped string

var skips = parseSkips(skipped)

// parseSkips reads pairs of lines: a pattern of names, and the reason, which is indented.
func parseSkips(text string) (all []skip) {
	for line := range strings.Lines(text) {
		said := strings.TrimSpace(line)
		switch {
		case said == "" || strings.HasPrefix(said, "#"):
		case strings.HasPrefix(line, "\t") && len(all) > 0:
			last := &all[len(all)-1]
			last.reason = strings.TrimSpace(last.reason + " " + said)
		default:
			all = append(all, skip{pattern: said})
		}
	}
	return all
}

// result is what a run of the suite has shown.
type result struct {
	Pools  string   `json:"pools"`
	Passed int      `json:"passed"`
	Failed []string `json:"failed"`
	// Unfit are the specs that the suite itself left out as soon as it looked at the driver or the cluster.
	Unfit int           `json:"unfit"`
	Took  time.Duration `json:"took"`
}

// summarize counts the specs that were chosen.
func summarize(pools string, r *types.Report) result {
	out := result{Pools: pools, Failed: []string{}, Took: r.RunTime.Round(time.Second)}
	for i := range r.SpecReports {
		s := &r.SpecReports[i]
		switch {
		case s.LeafNodeType != types.NodeTypeIt:
		case s.State.Is(types.SpecStatePassed):
			out.Passed++
		case s.Failed():
			out.Failed = append(out.Failed, s.FullText())
		case s.State.Is(types.SpecStateSkipped) && s.Failure.Message != "": // it began, and said why not
			out.Unfit++
		}
	}
	slices.Sort(out.Failed)
	return out
}

func (r result) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %d passed, %d failed, %d do not fit, in %v\n", r.Pools, r.Passed, len(r.Failed), r.Unfit, r.Took)
	for _, f := range r.Failed {
		fmt.Fprintf(w, "failed: %s\n", f)
	}
}

// write keeps the result, and makes the page anew of all results.
func write(r result) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(results, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(results, r.Pools+".json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(results, "*.json"))
	if err != nil {
		return err
	}
	var all []result
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var one result
		if err := json.Unmarshal(text, &one); err != nil {
			return fmt.Errorf("reading %s: %w", f, err)
		}
		all = append(all, one)
	}
	return os.WriteFile(page, []byte(render(all, skips)), 0o644)
}
