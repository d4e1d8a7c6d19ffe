package provision_test

import (
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
)

func TestSpareIsBytesAndPercentTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		spare provision.Spare
		total int64
		want  int64
	}{
		"none":                          {total: 1000},
		"bytes":                         {spare: provision.Spare{Bytes: 7}, total: 1000, want: 7},
		"a tenth":                       {spare: provision.Spare{Percent: 10}, total: 1000, want: 100},
		"a share is rounded up":         {spare: provision.Spare{Percent: 10}, total: 1001, want: 101},
		"both":                          {spare: provision.Spare{Bytes: 7, Percent: 10}, total: 1000, want: 107},
		"everything":                    {spare: provision.Spare{Percent: 100}, total: 1001, want: 1001},
		"more bytes than the pool has":  {spare: provision.Spare{Bytes: 2000}, total: 1000, want: 2000},
		"percent of a pool without any": {spare: provision.Spare{Percent: 50}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.spare.In(tc.total); got != tc.want {
				t.Errorf("%+v of %d is %d, want %d", tc.spare, tc.total, got, tc.want)
			}
		})
	}
}

func TestTheLargestSpareDoesNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := provision.Spare{
			Bytes:   rapid.Int64Range(0, provision.MaxSize).Draw(t, "bytes"),
			Percent: rapid.IntRange(0, 100).Draw(t, "percent"),
		}
		total := rapid.Int64Range(0, provision.MaxSize).Draw(t, "total")
		if got := s.In(total); got < s.Bytes || got > s.Bytes+total {
			t.Fatalf("%+v of %d is %d", s, total, got)
		}
	})
}
