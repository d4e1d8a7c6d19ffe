package figures

import (
	"math"
	"testing"
)

func TestARatioIsTheGeometricMeanOfTheRounds(t *testing.T) {
	got := Ratio([]float64{20, 80}, []float64{10, 10})
	if math.Abs(got.Value-4) > 1e-9 {
		t.Errorf("got %v, want 4, the geometric mean of 2 and 8", got.Value)
	}
	if math.Abs(got.Low-2) > 1e-9 || math.Abs(got.High-8) > 1e-9 {
		t.Errorf("the interval of two rounds is %v, want both of them", got)
	}
}

func TestNoiseThatBothSidesShareDoesNotWidenTheInterval(t *testing.T) {
	base := []float64{100, 40, 70, 10, 55}
	var twice []float64
	for _, v := range base {
		twice = append(twice, 2*v)
	}
	got := Ratio(twice, base)
	if math.Abs(got.Low-2) > 1e-9 || math.Abs(got.High-2) > 1e-9 {
		t.Errorf("got %v, want 2 without doubt", got)
	}
}

func TestAnIntervalHoldsItsRatioAndNarrowsWithRounds(t *testing.T) {
	few := []float64{1, 2, 3, 4}
	var many, ones []float64
	for range 16 {
		many = append(many, few...)
	}
	for range many {
		ones = append(ones, 1)
	}
	a, b := Ratio(few, ones), Ratio(many, ones)
	for _, i := range []Interval{a, b} {
		if i.Value < i.Low || i.Value > i.High {
			t.Errorf("%v lies outside of %v", i.Value, i)
		}
	}
	if b.High-b.Low >= a.High-a.Low {
		t.Errorf("64 rounds give %v, 4 rounds %v", b, a)
	}
	if again := Ratio(few, ones); again != a {
		t.Errorf("the same rounds give %v and %v", a, again)
	}
}

func TestRoundsThatWereNotMeasuredGiveNoRatio(t *testing.T) {
	if got := Ratio(nil, []float64{1}); !math.IsNaN(got.Value) {
		t.Errorf("got %v", got)
	}
	if got := Ratio([]float64{3}, []float64{1}).String(); got != "-" {
		t.Errorf("one round has the interval %s", got)
	}
}

func TestAMedianLiesInTheMiddle(t *testing.T) {
	for name, tt := range map[string]struct {
		values []float64
		want   float64
	}{
		"an odd number of values":  {[]float64{9, 1, 5}, 5},
		"an even number of values": {[]float64{9, 1, 5, 7}, 6},
		"a single value":           {[]float64{3}, 3},
		"a value far astray":       {[]float64{1, 1, 1, 1000}, 1},
	} {
		if got := Median(tt.values); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("nothing has a median")
	}
}

func TestFiguresHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0.123: "0.12", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 1234: "1234"} {
		if got := Digits(v); got != want {
			t.Errorf("%v is printed as %s, want %s", v, got, want)
		}
	}
}
