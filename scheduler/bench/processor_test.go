package main

import (
	"os"
	"testing"
	"time"
)

func TestFieldsOfAStatFileBeginBehindTheName(t *testing.T) {
	const stat = "42 (a) name (b)) S 7 1 1 0 -1 4194560 1 0 0 0 150 25 3 4 20 0 1 0 0 0 0"
	fields, err := fieldsOf([]byte(stat))
	if err != nil {
		t.Fatal(err)
	}
	if fields[1] != "7" {
		t.Errorf("the parent is %s, want 7", fields[1])
	}
	if got, err := sum(fields[11:13]); err != nil || got != 1750*time.Millisecond {
		t.Errorf("used %v, %v, want 1.75s", got, err)
	}
	for _, bad := range []string{"", "1 (x) S 1"} {
		if fields, err := fieldsOf([]byte(bad)); err == nil {
			t.Errorf("%q has the fields %v", bad, fields)
		}
	}
}

func TestTimesOfThisProcessAreWithinThoseOfTheMachine(t *testing.T) {
	self, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	own, err := ownTime()
	if err != nil {
		t.Fatal(err)
	}
	busy, err := busyTime()
	if err != nil {
		t.Fatal(err)
	}
	if self > own || own > busy {
		t.Errorf("this process %v, with its children %v, the machine %v", self, own, busy)
	}
}
