package zpool

import (
	"strings"
	"testing"
)

// Names and properties of datasets are also those of others than Berth, and of received backups.
func FuzzReport(f *testing.F) {
	f.Add([]byte(strings.Repeat("-\t", len(columns)-1) + "-\n"))
	f.Add([]byte("tank\tfilesystem\t1\t2\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		rows, err := Parse(out)
		if err != nil {
			return
		}
		for _, r := range rows {
			if strings.ContainsAny(r.name, "\t\n") {
				t.Errorf("dataset %q", r.name)
			}
			rec := parseRecord(r)
			if rec.source.Snapshot != "" && rec.source.Volume != "" {
				t.Errorf("two sources: %+v", rec.source)
			}
		}
	})
}
