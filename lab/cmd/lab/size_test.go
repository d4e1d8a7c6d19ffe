package main

import "testing"

func TestSizesAreReadAndWritten(t *testing.T) {
	cases := map[string]struct {
		text string
		want int64
		back string
	}{
		"a unit is a power of 1024":     {"10G", 10 << 30, "10G"},
		"the long form of a unit":       {"512MiB", 512 << 20, "512M"},
		"the form with i":               {"2Gi", 2 << 30, "2G"},
		"bytes":                         {"1000", 1000, "1000"},
		"the largest unit that divides": {"2048M", 2 << 30, "2G"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s size
			if err := s.Set(c.text); err != nil || int64(s) != c.want || s.String() != c.back {
				t.Errorf("%q gives %d (%s), %v; want %d (%s)", c.text, int64(s), s.String(), err, c.want, c.back)
			}
		})
	}
	for _, bad := range []string{"", "G", "-1G", "0", "1.5G", "10X", "99999999999T"} {
		var s size
		if err := s.Set(bad); err == nil {
			t.Errorf("%q was accepted as %d", bad, int64(s))
		}
	}
}
