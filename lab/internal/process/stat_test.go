package process

import "testing"

func TestStatFieldsAreCountedFromTheLastParenthesis(t *testing.T) {
	line := "42 (a ) name) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 100 200\n"
	got, err := parseStat([]byte(line))
	if err != nil || got != (stat{state: 'S', startTime: 987654}) {
		t.Errorf("parseStat = %+v, %v", got, err)
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S 1 2"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("parseStat(%q) gives no error", bad)
		}
	}
}
