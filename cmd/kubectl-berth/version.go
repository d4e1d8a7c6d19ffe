package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth.dev/berth/internal/plain"
	"berth.dev/berth/internal/survey"
)

// version is set when a release is built: -ldflags "-X main.version=1.2.3".
var version = "devel"

// versions are those of the plugin and of what runs in the cluster.
type versions struct {
	Plugin string `json:"plugin"`
	Go     string `json:"go"`
	// The others are empty if they are not installed, or the cluster was not asked.
	Controllers     []string `json:"controllers,omitempty"`
	Agents          []string `json:"agents,omitempty"`
	Schedulers      []string `json:"schedulers,omitempty"`
	DiskControllers []string `json:"diskControllers,omitempty"`
	DiskAgents      []string `json:"diskAgents,omitempty"`
	Guards          []string `json:"guards,omitempty"`
	// Skew says in a sentence which versions differ; empty if none do.
	Skew string `json:"skew,omitempty"`
}

// newVersionCommand prints the versions of the plugin and of the programs in the cluster.
func newVersionCommand(t *target, connect connector) *cobra.Command {
	var o output
	var local bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the versions of this plugin and of Berth's programs in the cluster", Args: cobra.NoArgs,
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

// of is the list of a component's versions.
func (v *versions) of(component string) *[]string {
	return map[string]*[]string{
		survey.Controller: &v.Controllers, survey.Agent: &v.Agents, survey.Scheduler: &v.Schedulers,
		survey.DiskController: &v.DiskControllers, survey.DiskAgent: &v.DiskAgents, survey.Guard: &v.Guards,
	}[component]
}

// compare notes the versions of the workloads, and whether they differ.
func (v *versions) compare(p survey.Programs) {
	all, notes := []string{v.Plugin}, []string(nil)
	for _, component := range survey.Components {
		list := v.of(component.Name)
		for _, program := range p.Of(component.Name) {
			*list, all = append(*list, program.Version), append(all, program.Version)
			older := program.Pods.Of - program.Updated
			switch {
			case older <= 0 || !program.Once:
			case component.Name == survey.Guard:
				notes = append(notes, fmt.Sprintf("%d of %d guards run an older version of their DaemonSet: an administrator replaces a guard, on a node that is drained", older, program.Pods.Of))
			default:
				notes = append(notes, fmt.Sprintf("%d of %d %s run the newest version of their DaemonSet", program.Updated, program.Pods.Of, component.Many))
			}
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > 1 && len(notes) == 0 {
		notes = []string{fmt.Sprintf("the versions differ: %d of them are in use", len(all))}
	}
	v.Skew = strings.Join(notes, "; ")
}

func (v versions) write(to io.Writer, _ bool) error {
	t := table{header: []string{"PROGRAM", "VERSION"}, narrow: 2, rows: [][]string{{"kubectl-berth", v.Plugin + " (" + v.Go + ")"}}}
	for _, component := range survey.Components {
		for _, found := range *v.of(component.Name) {
			t.rows = append(t.rows, []string{component.Many, found})
		}
	}
	if err := t.write(to, false); err != nil || v.Skew == "" {
		return err
	}
	_, err := fmt.Fprintf(to, "\nnote: %s\n", plain.Line(v.Skew))
	return err
}
