package figures

import (
	"testing"
	"time"
)

func TestAQuantileIsASampleOfTheNearestRank(t *testing.T) {
	twenty := make([]time.Duration, 20)
	for i := range twenty {
		twenty[i] = time.Duration(20-i) * time.Second
	}
	tests := map[string]struct {
		samples []time.Duration
		q       float64
		want    time.Duration
	}{
		"no samples":                                 {nil, 0.5, 0},
		"a single sample is every quantile":          {twenty[:1], 0.95, 20 * time.Second},
		"the median of twenty":                       {twenty, 0.5, 10 * time.Second},
		"the 95th of twenty":                         {twenty, 0.95, 19 * time.Second},
		"the highest quantile is the largest sample": {twenty, 1, 20 * time.Second},
		"the lowest quantile is the smallest sample": {twenty, 0, 1 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Quantile(tt.samples, tt.q); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSecondsKeepThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		12 * time.Millisecond:    "0.012",
		999 * time.Millisecond:   "0.999",
		1234 * time.Millisecond:  "1.23",
		12345 * time.Millisecond: "12.3",
		152 * time.Second:        "152",
	} {
		if got := Seconds(d); got != want {
			t.Errorf("%v is printed as %s, want %s", d, got, want)
		}
	}
}
