package group

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
)

func TestTheKernelsStatusOfAThinPoolIsUnderstood(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		fill    provision.Fill // of 1024 bytes
		trouble string
	}{
		"an empty pool": {
			"0 111/1024 0/4096 - rw discard_passdown queue_if_no_space - 256 ", provision.Fill{Metadata: 11}, "",
		},
		"a fill that is rounded up": {
			"2 116/1024 641/1025 - rw no_discard_passdown error_if_no_space - 256", provision.Fill{Data: 641, Metadata: 12}, "",
		},
		"a pool with a held snapshot of the metadata": {
			"2 1/1024 512/1024 77 rw discard_passdown queue_if_no_space - 256", provision.Fill{Data: 512, Metadata: 1}, "",
		},
		"a pool without room": {
			"2 118/1024 1024/1024 - out_of_data_space discard_passdown error_if_no_space - 256", provision.Fill{Data: 1024, Metadata: 12}, "lvextend --size",
		},
		"metadata that cannot be written": {
			"2 1024/1024 1/1024 - ro discard_passdown error_if_no_space - 256", provision.Fill{Data: 1, Metadata: 100}, "lvextend --poolmetadatasize",
		},
		"metadata to be checked": {
			"2 118/1024 1/1024 - ro discard_passdown error_if_no_space needs_check 256", provision.Fill{Data: 1, Metadata: 12}, "needs a check",
		},
		"a failed pool":                  {"Fail", provision.Fill{}, "has failed"},
		"a pool with an error":           {"Error", provision.Fill{}, "has failed"},
		"a kernel with a shorter answer": {"0 1/2 3/4 - rw", provision.Fill{Data: 768, Metadata: 50}, ""},
		"the largest possible pool":      {"0 1/2 18446744073709551615/18446744073709551615 - rw", provision.Fill{Data: 1024, Metadata: 50}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ParseThinStatus(tc.text)
			if err != nil || !s.Live() || s.fill(1024) != tc.fill {
				t.Errorf("read %+v, fill %+v, %v; want fill %+v", s, s.fill(1024), err, tc.fill)
			}
			if got := s.trouble("vg/pool"); !strings.Contains(got, tc.trouble) || (got == "") != (tc.trouble == "") {
				t.Errorf("trouble %q, want %q", got, tc.trouble)
			}
		})
	}
}

func TestAStatusThatIsNotUnderstoodIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"an empty answer":                  "",
		"an answer that is cut short":      "0 1/2 3/4 -",
		"a word for a number":              "0 one/2 3/4 - rw",
		"no total":                         "0 1 3/4 - rw",
		"more blocks taken than the total": "0 1/2 5/4 - rw",
		"a pool without blocks":            "0 0/0 0/0 - rw",
		"an unknown mode":                  "0 1/2 3/4 - half_open",
	} {
		if s, err := ParseThinStatus(text); err == nil || s.Live() {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if (ThinStatus{}).Live() || (ThinStatus{}).fill(1024) != (provision.Fill{}) {
		t.Error("a pool that is not active has a status")
	}
}

func TestGarbageNeverCrashesTheStatusReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := ParseThinStatus(rapid.StringMatching(`([0-9]{1,20}[ /]){1,9}(-|rw|ro)( [a-z_]+){0,4}`).Draw(t, "status"))
		if f := s.fill(1 << 60); err == nil && (f.Data < 0 || f.Data > 1<<60 || f.Metadata < 0 || f.Metadata > 100) {
			t.Fatalf("%+v is filled with %+v", s, f)
		}
	})
}

func TestAThinPoolThatMovedByAHundredthIsNews(t *testing.T) {
	status := func(change func(*ThinStatus)) ThinStatus {
		s := ThinStatus{mode: modeWorks, data: use{500, 1000}, metadata: use{50, 150}}
		change(&s)
		return s
	}
	told := status(func(*ThinStatus) {})
	for name, tc := range map[string]struct {
		change func(*ThinStatus)
		want   bool
	}{
		"no change":                     {func(*ThinStatus) {}, false},
		"less than a hundredth of data": {func(s *ThinStatus) { s.data.taken = 509 }, false},
		"a hundredth of data":           {func(s *ThinStatus) { s.data.taken = 510 }, true},
		"a hundredth of data less":      {func(s *ThinStatus) { s.data.taken = 490 }, true},
		"a little metadata":             {func(s *ThinStatus) { s.metadata.taken = 51 }, false},
		"a hundredth of metadata":       {func(s *ThinStatus) { s.metadata.taken = 52 }, true},
		"a larger pool":                 {func(s *ThinStatus) { s.data.total = 2000 }, true},
		"a new mode":                    {func(s *ThinStatus) { s.mode = modeReadOnly }, true},
		"a check that is needed":        {func(s *ThinStatus) { s.needsCheck = true }, true},
		"a kernel without an answer":    {func(s *ThinStatus) { *s = ThinStatus{Failure: "a"} }, true},
		"a missing pool":                {func(s *ThinStatus) { *s = ThinStatus{} }, true},
	} {
		if got := status(tc.change).News(told); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if !(use{1, 50}).moved(use{0, 50}) || (use{0, 50}).moved(use{0, 50}) {
		t.Error("a block is more than a hundredth of fifty")
	}
}
