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
		"a little, soon":                {0, 9, 59 * time.Second, false},
		"much":                          {0, 10, 0, true},
		"a little, after long":          {0, 1, time.Minute, true},
		"nothing, after long":           {5, 5, time.Hour, false},
		"much behind what is recorded":  {50, 60, 0, true},
		"less than is recorded":         {50, 0, 0, true},
		"nothing where nothing is":      {0, 0, time.Hour, false},
		"a little behind what is there": {50, 59, 0, false},
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
