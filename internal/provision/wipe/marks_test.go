package wipe_test

import (
	"testing"
	"time"

	"berth.dev/berth/internal/provision/wipe"
)

func TestProgressIsRecordedWhenItTookLong(t *testing.T) {
	begin := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		recorded, done int64
		after          time.Duration
		want           bool
	}{
		"a little progress, soon":            {0, 9, 59 * time.Second, false},
		"much progress":                      {0, 10, 0, true},
		"a little progress, after a minute":  {0, 1, time.Minute, true},
		"no progress, after an hour":         {5, 5, time.Hour, false},
		"much progress since the record":     {50, 60, 0, true},
		"less progress than the record says": {50, 0, 0, true},
		"no progress and no record":          {0, 0, time.Hour, false},
		"a little progress since the record": {50, 59, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := wipe.Marks{Bytes: 10, Interval: time.Minute}
			m.From(tc.recorded, begin)
			if got := m.Due(tc.done, begin.Add(tc.after)); got != tc.want {
				t.Errorf("due: %v", got)
			}
			if m.Due(tc.done, begin.Add(tc.after)) && tc.want {
				t.Error("it is due twice")
			}
		})
	}
}
