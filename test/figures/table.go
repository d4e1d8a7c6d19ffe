package figures

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table is a Markdown table whose columns also line up as plain text.
type Table struct {
	Head []string
	Rows [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the table. The first column is text; the others are figures, aligned
// to the right.
func (t *Table) Print(w io.Writer) {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	t.line(w, widths, t.Head)
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
		if i > 0 {
			rule[i] = strings.Repeat("-", width-1) + ":"
		}
	}
	t.line(w, widths, rule)
	for _, row := range t.Rows {
		t.line(w, widths, row)
	}
}

func (t *Table) line(w io.Writer, widths []int, cells []string) {
	for i, width := range widths {
		cell := ""
		if i < len(cells) {
			cell = cells[i]
		}
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
		if i == 0 {
			cell += pad
		} else {
			cell = pad + cell
		}
		fmt.Fprintf(w, "| %s ", cell)
	}
	fmt.Fprintln(w, "|")
}
