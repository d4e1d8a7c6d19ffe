package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryValueHasItsDefaultAndItsComment(t *testing.T) {
	got, err := page("head\n", []byte(`# What a is,
# in two lines.
a: ""
# A part.
b:
  # One | two.
  c: 3
  # Of b.
  resources:
    requests: {cpu: 10m}
  # A list.
  d: [{operator: Exists}]
`))
	if err != nil {
		t.Fatal(err)
	}
	table, found := strings.CutPrefix(string(got), "head\n")
	want := `
| value | default | meaning |
|---|---|---|
| ` + "`a` | `\"\"`" + ` | What a is, in two lines. |
| ` + "`b`" + ` | | A part. |
| ` + "`b.c` | `3`" + ` | One \| two. |
| ` + "`b.resources` | `{\"requests\":{\"cpu\":\"10m\"}}`" + ` | Of b. |
| ` + "`b.d` | `[{\"operator\":\"Exists\"}]`" + ` | A list. |
`
	if diff := cmp.Diff(want, table); !found || diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestAValueWithoutACommentIsRefused(t *testing.T) {
	if _, err := page("head\n", []byte("a:\n  b: 1\n")); err == nil || !strings.Contains(err.Error(), "a.b") {
		t.Errorf("error is %v, want one that names the value", err)
	}
}
