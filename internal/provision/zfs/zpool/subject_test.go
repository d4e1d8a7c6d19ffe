package zpool

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
)

// reported is a report of a zpool with volume pvc-1, its snapshot snap-1 and the base of a clone of
// it, and with what a crash left of volume pvc-2.
var reported = []string{
	line("tank", "filesystem", "0", "0", "24576", "0", "-", "0", "0", "0", "-", "-", "1", "1", "-", "-", "-", "-", "-", "-", "-", "-", "on", "1", "-", "-", "-", "-", "-", "-"),
	line(vol, "volume", "0", "0", "50331648", "4096", "67108864", "70254592", "-", "-", "-", "-", "9", "1", "-", "pvc-1", "ext4", "none", "none", "none", "-", "-", "-", "11", "-", "-", "-", "-", "-", "-"),
	line(vol+"@snap-1", "snapshot", "0", "-", "12288", "0", "67108864", "-", "-", "-", "-", "-", "11", "1", "-", "pvc-1", "ext4", "none", "none", "snap-1", "-", "-", "-", "12", "-", "-", "-", "-", "-", "-"),
	line(vol+"@berth-base-x.1", "snapshot", "0", "-", "12288", "0", "67108864", "-", "-", "-", "-", "-", "11", "1", "-", "pvc-1", "ext4", "none", "none", "berth-base-x.1", "-", "-", "-", "13", "-", "-", "-", "-", "-", "-"),
	line(leftover, "volume", "0", "0", "12288", "0", "67108864", "0", "-", "-", "-", "-", "9", "1", "-", "-", "-", "-", "-", "-", "-", "-", "-", "14", "-", "-", "-", "-", "-", "-"),
}

var leftover = LiveName("tank", "pvc-2")

// facts are those of a report.
func facts(t *testing.T, lines []string) *Facts {
	t.Helper()
	rows, err := Parse([]byte(strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	z, err := New(rows)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestAStepIsTakenOnlyOnTheDatasetThatWasPlanned(t *testing.T) {
	justMade := func(z *Facts) {
		z.Datasets[vol].guid, z.Datasets[vol].snapshots["snap-1"].guid = "", ""
	}
	for name, tc := range map[string]struct {
		dataset, at string
		facts       func(*Facts)
		empty       bool
		from, to    string // what the report says now in another way
		refused     bool
	}{
		"a volume":                                {dataset: vol},
		"a volume that was made just now":         {dataset: vol, facts: justMade},
		"a snapshot":                              {dataset: vol, at: "snap-1"},
		"a snapshot that was taken just now":      {dataset: vol, at: "snap-1", facts: justMade},
		"the base of a clone":                     {dataset: vol, at: "berth-base-x.1"},
		"the leftover of a volume":                {dataset: leftover},
		"an empty dataset":                        {dataset: leftover, empty: true},
		"another zpool":                           {dataset: vol, facts: justMade, from: "\ton\t1\t-\t-\t-\t-\t-\t-\n", to: "\ton\t2\t-\t-\t-\t-\t-\t-\n", refused: true},
		"another dataset":                         {dataset: vol, from: "\t11\t-\t-\t-\t-\t-\t-\n", to: "\t99\t-\t-\t-\t-\t-\t-\n", refused: true},
		"another dataset without a record":        {dataset: vol, facts: justMade, from: "\tpvc-1\text4\tnone\tnone\tnone", to: "\t-\t-\t-\t-\t-", refused: true},
		"no dataset":                              {dataset: vol, from: vol + "\t", to: "tank/other\t", refused: true},
		"a filesystem in place of a zvol":         {dataset: vol, facts: justMade, from: vol + "\tvolume", to: vol + "\tfilesystem", refused: true},
		"a leftover that became a volume":         {dataset: leftover, from: "\t-\t-\t-\t-\t-\t-\t-\t-\t-\t14", to: "\t-\tpvc-2\tnone\tnone\tnone\tnone\t-\t-\t-\t14", refused: true},
		"a leftover that others have written to":  {dataset: leftover, from: "\t12288\t0\t67108864\t0", to: "\t50331648\t0\t67108864\t0", refused: true},
		"a dataset that must be empty, with data": {dataset: vol, empty: true, refused: true},
		"another snapshot":                        {dataset: vol, at: "snap-1", from: "\t12\t-\t-\t-\t-\t-\t-\n", to: "\t99\t-\t-\t-\t-\t-\t-\n", refused: true},
		"a snapshot without a record":             {dataset: vol, at: "snap-1", facts: justMade, from: "\tsnap-1\t-", to: "\tnone\t-", refused: true},
		"a base without a record":                 {dataset: vol, at: "berth-base-x.1", from: "\tberth-base-x.1\t-", to: "\tnone\t-", refused: true},
		"no snapshot":                             {dataset: vol, at: "snap-1", from: "@snap-1", to: "@daily", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			z := facts(t, reported)
			if tc.facts != nil {
				tc.facts(z)
			}
			s := subject(z, tc.dataset, tc.at)
			s.empty = tc.empty
			all := strings.Join(reported, "")
			if !strings.Contains(all, tc.from) {
				t.Fatalf("the report lacks %q", tc.from)
			}
			if err := s.Check([]byte(strings.Replace(all, tc.from, tc.to, 1))); tc.refused != errors.Is(err, provision.ErrUnavailable) || !tc.refused && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAReportOfASubjectThatIsNotUnderstoodIsAnError(t *testing.T) {
	s := subject(facts(t, reported), vol, "")
	for _, report := range []string{"", "tank\n", reported[1]} {
		if err := s.Check([]byte(report)); err == nil {
			t.Errorf("%q shows the subject", report)
		}
	}
}

func TestASubjectIsAskedForByItsNameAndThoseAboveIt(t *testing.T) {
	z := facts(t, reported)
	for at, want := range map[string]string{"": "tank " + vol, "snap-1": "tank " + vol + " " + vol + "@snap-1"} {
		if got := strings.Join(planner.SubjectCommand(subject(z, vol, at)).Args, " "); !strings.HasSuffix(got, " "+want) || !strings.Contains(got, ",guid,") || strings.Contains(got, " -r ") {
			t.Errorf("it runs %s", got)
		}
	}
}
