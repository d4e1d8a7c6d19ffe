package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"berth.dev/berth/internal/plain"
)

// The forms of an answer.
const (
	asTable = ""
	asWide  = "wide"
	asJSON  = "json"
	asYAML  = "yaml"
)

// output is the form that the user asked for.
type output struct{ form string }

// flag adds --output to a command.
func (o *output) flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.form, "output", "o", asTable, "form of the answer: wide, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{asWide, asJSON, asYAML}, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses an unknown form.
func (o *output) check() error {
	switch o.form {
	case asTable, asWide, asJSON, asYAML:
		return nil
	}
	return fmt.Errorf("--output %q is none of %s, %s and %s", o.form, asWide, asJSON, asYAML)
}

// write writes the answer: as a document if the user asked for one, else by the function.
func (o *output) write(to io.Writer, answer any, text func(to io.Writer, wide bool) error) error {
	switch o.form {
	case asJSON:
		return writeDocument(to, plain.JSON, answer)
	case asYAML:
		return writeDocument(to, plain.YAML, answer)
	}
	return text(to, o.form == asWide)
}

func writeDocument(to io.Writer, encode func(any) ([]byte, error), answer any) error {
	document, err := encode(answer)
	if err != nil {
		return err
	}
	_, err = to.Write(document)
	return err
}

// table prints rows below a header. Those after the first narrow columns are for the wide form.
type table struct {
	header []string
	narrow int
	rows   [][]string
}

func (t table) write(to io.Writer, wide bool) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.header}, t.rows...) {
		if !wide {
			row = row[:t.narrow]
		}
		cells := make([]string, len(row))
		for i := range row {
			cells[i] = plain.Line(row[i])
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // an error shows at Flush
	}
	return w.Flush()
}
