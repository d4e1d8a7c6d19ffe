package explore

import "testing"

func TestSeveralWorkersSeeAsManyStatesAsOne(t *testing.T) {
	for _, b := range SmallBounds() {
		t.Run(b.Name, func(t *testing.T) {
			one := Exhaust(b.Bounds, Berth(), Watch{})
			b.Workers = 3
			three := Exhaust(b.Bounds, Berth(), Watch{})
			if one.States != three.States || !three.Complete {
				t.Errorf("one worker saw %d states, three saw %d (complete: %t)", one.States, three.States, three.Complete)
			}
		})
	}
}

func TestASearchThatIsToldToStopSaysSo(t *testing.T) {
	b := SmallBounds()[0].Bounds
	b.MaxStates = 10
	if r := Exhaust(b, Berth(), Watch{}); r.Complete || r.Visits != 10 {
		t.Errorf("it stopped with %d visits, complete: %t", r.Visits, r.Complete)
	}
}

func TestABudgetCoversEveryBudgetThatIsNotLarger(t *testing.T) {
	budgetOf := func(writes, crashes int) budget { return newBudget(&Bounds{Writes: writes, Crashes: crashes}) }
	tests := map[string]struct {
		a, b budget
		want bool
	}{
		"an equal one":             {budgetOf(2, 1), budgetOf(2, 1), true},
		"a smaller one":            {budgetOf(2, 1), budgetOf(1, 1), true},
		"not a larger one":         {budgetOf(1, 1), budgetOf(2, 1), false},
		"not one of another shape": {budgetOf(2, 0), budgetOf(1, 1), false},
		"nothing":                  {budgetOf(0, 0), budgetOf(0, 0), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.a.covers(tt.b); got != tt.want {
				t.Errorf("covers() = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestAStateIsGoneOnFromAgainOnlyWithMoreToHappen(t *testing.T) {
	var v visited
	key := [2]uint64{1 << 60, 7}
	left := func(writes, crashes int) budget { return newBudget(&Bounds{Writes: writes, Crashes: crashes}) }
	steps := []struct {
		what         string
		left         budget
		enter, first bool
	}{
		{"the first time", left(1, 0), true, true},
		{"with the same", left(1, 0), false, false},
		{"with less", left(0, 0), false, false},
		{"with something else", left(0, 1), true, false},
		{"with more", left(2, 1), true, false},
		{"with what is now less", left(1, 1), false, false},
	}
	for _, s := range steps {
		if enter, first := v.enter(key, s.left); enter != s.enter || first != s.first {
			t.Errorf("%s: entered %t for the first time %t, want %t and %t", s.what, enter, first, s.enter, s.first)
		}
	}
	if n := v.states(); n != 1 {
		t.Errorf("%d states were counted", n)
	}
}
