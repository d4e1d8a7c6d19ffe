package figures

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestBarsAreWellFormedAndTheSameEachTime(t *testing.T) {
	bars := []Bar{
		{Name: "ext4 <1Gi>", Segments: []Segment{{"carve", 1}, {"mount & run", 3}}},
		{Name: "floor", Segments: []Segment{{"mount & run", 2}}},
	}
	var first, second strings.Builder
	Bars(&first, "from claim to pod", "s", bars)
	Bars(&second, "from claim to pod", "s", bars)
	if first.String() != second.String() {
		t.Error("two drawings of the same bars differ")
	}
	decoder := xml.NewDecoder(strings.NewReader(first.String()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"4.00 s", "2.00 s", "mount &amp; run"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
}
