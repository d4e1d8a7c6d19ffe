package zpool

import (
	"fmt"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision"
)

// columns of a report, in the order in which Parse reads them.
var columns = []string{
	"name", "type", "used", "available", "referenced", "written", "volsize", "refreservation", "refquota", "quota", "origin", "defer_destroy", "createtxg", "creation",
	PropPool, PropVolume, propFilesystem, propSource, propInline, PropSnapshot, propSize, propTaken, propCanMount, "guid",
	propLabel + provision.LabelNamespace, propLabel + provision.LabelClaim,
	propVolMode, "receive_resume_token", propCopyFirst, propCopyRest,
}

// The types of rows.
const (
	kindFilesystem = "filesystem"
	kindVolume     = "volume"
	kindSnapshot   = "snapshot"
)

// Row is the line of a report about one dataset or snapshot. Figures that do not apply
// are 0, and texts "-".
type Row struct {
	name, kind                               string
	used, available, referenced, written     int64
	volsize, refreservation, refquota, quota int64
	origin                                   string
	deferred                                 bool
	createTXG, creation                      int64
	pool, volume, filesystem, source, inline string
	snapshot, size, taken, canMount, guid    string
	namespace, claim                         string // labels
	volMode, token, copyFirst, copyRest      string
}

// holds returns how many bytes a dataset holds of its own.
func (r Row) holds() int64 {
	if r.origin != "-" {
		return r.written
	}
	return r.referenced
}

// Parse reads a report: one line for each dataset, with tabs between columns and
// plain numbers. A parent comes before its children, a dataset before its snapshots.
func Parse(out []byte) ([]Row, error) {
	var rows []Row
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != len(columns) {
			return nil, fmt.Errorf("reading ZFS's report: %d columns instead of %d in %q", len(fields), len(columns), line)
		}
		r := Row{
			name: fields[0], kind: fields[1], origin: fields[10], deferred: fields[11] == "on",
			pool: fields[14], volume: fields[15], filesystem: fields[16], source: fields[17], inline: fields[18], snapshot: fields[19],
			size: fields[20], taken: fields[21], canMount: fields[22], guid: fields[23],
			namespace: fields[24], claim: fields[25], volMode: fields[26], token: fields[27], copyFirst: fields[28], copyRest: fields[29],
		}
		for i, to := range map[int]*int64{
			2: &r.used, 3: &r.available, 4: &r.referenced, 5: &r.written, 6: &r.volsize, 7: &r.refreservation, 8: &r.refquota, 9: &r.quota,
			12: &r.createTXG, 13: &r.creation,
		} {
			n, err := number(fields[i])
			if err != nil {
				return nil, fmt.Errorf("reading ZFS's report: %s of %s: %w", columns[i], r.name, err)
			}
			*to = n
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func number(text string) (int64, error) {
	if text == "-" || text == none {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}
