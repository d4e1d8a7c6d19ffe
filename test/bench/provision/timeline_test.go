package main

import (
	"testing"
	"time"
)

func TestAStretchBeginsAtTheLastStationThatWasSeen(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	volume := timeline{posted: at(0), selected: at(1), placed: at(2), carved: at(4), bound: at(5), scheduled: at(6), running: at(9)}
	plain := timeline{posted: at(0), scheduled: at(1), running: at(3)}
	tests := map[string]struct {
		line timeline
		s    station
		want time.Duration
	}{
		"every station seen":                     {volume, carved, 2 * time.Second},
		"stations that a plain pod never sees":   {plain, carved, 0},
		"a plain pod is scheduled after posting": {plain, scheduled, time.Second},
		"events of two watches that overtake each other count as no time": {
			timeline{posted: at(0), placed: at(2), carved: at(1)}, carved, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.line.stretch(tt.s); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if got := volume.took(); got != 9*time.Second {
		t.Errorf("took %v", got)
	}
}
