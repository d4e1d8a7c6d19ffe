package figures

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestATableLinesUpAsText(t *testing.T) {
	table := Table{Head: []string{"what", "p50"}}
	table.Add("a long name", "1")
	table.Add("été", "12.345")
	var b strings.Builder
	table.Print(&b)
	want := strings.Join([]string{
		"| what        |    p50 |",
		"| ----------- | -----: |",
		"| a long name |      1 |",
		"| été         | 12.345 |",
		"",
	}, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
