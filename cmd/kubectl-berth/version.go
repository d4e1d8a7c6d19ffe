package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"berth.dev/berth/internal/survey"
)

// version is set when a release is built: -ldflags "-X main.version=1.2.3".
var version = "devel"

// versions are those of the plugin and of what runs in the cluster.
type versions struct {
	Plugin string `json:"plugin"`
	Go     string `json:"go"`
	// Controllers and Agents are empty if the cluster was not asked.
	Controllers []string `json:"controllers,omitempty"`
	Agents      []string `json:"agents,omitempty"`
	// Skew says in a sentence which versions differ; empty if none do.
	Skew string `json:"skew,omitempty"`
}

// newVersionCommand prints the versions of the plugin, the controllers and the agents.
func newVersionCommand(t *target, connect connector) *cobra.Command {
	var o output
	var local bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the versions of this plugin, the controllers and the agents", Args: cobra.NoArgs,
		Example: "  kubectl berth version\n  kubectl berth version --client",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			v := versions{Plugin: version, Go: runtime.Version()}
			if !local {
				reader, _, err := connect(*t)
				if err != nil {
					return err
				}
				found, err := programs(cmd.Context(), question{reader: reader, system: t.system})
				if err != nil {
					return err
				}
				v.compare(found)
			}
			return o.write(cmd.OutOrStdout(), v, v.write)
		},
	}
	cmd.Flags().BoolVar(&local, "client", false, "print the plugin's version only, and ask no cluster")
	o.flag(cmd)
	return cmd
}

// compare notes the versions of the workloads, and whether they differ.
func (v *versions) compare(p survey.Programs) {
	for i := range p.Controllers {
		v.Controllers = append(v.Controllers, cmp.Or(p.Controllers[i].Labels[versionLabel], "unknown"))
	}
	for i := range p.Agents {
		v.Agents = append(v.Agents, cmp.Or(p.Agents[i].Labels[versionLabel], "unknown"))
	}
	all := slices.Concat([]string{v.Plugin}, v.Controllers, v.Agents)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > 1 {
		v.Skew = fmt.Sprintf("the versions differ: %d of them are in use", len(all))
	}
	for i := range p.Agents {
		if s := p.Agents[i].Status; s.UpdatedNumberScheduled < s.DesiredNumberScheduled {
			v.Skew = fmt.Sprintf("%d of %d agents run the newest version of their DaemonSet", s.UpdatedNumberScheduled, s.DesiredNumberScheduled)
		}
	}
}

func (v versions) write(to io.Writer, _ bool) error {
	t := table{header: []string{"PROGRAM", "VERSION"}, narrow: 2, rows: [][]string{{"kubectl-berth", v.Plugin + " (" + v.Go + ")"}}}
	for _, c := range v.Controllers {
		t.rows = append(t.rows, []string{"controller", c})
	}
	for _, a := range v.Agents {
		t.rows = append(t.rows, []string{"agents", a})
	}
	if err := t.write(to, false); err != nil || v.Skew == "" {
		return err
	}
	_, err := fmt.Fprintf(to, "\nnote: %s\n", v.Skew)
	return err
}
