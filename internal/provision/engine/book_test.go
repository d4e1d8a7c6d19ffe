package engine_test

import (
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/provision/engine"
)

func TestAUnitIsDueFromAChangeByOthersUntilItIsReadAgain(t *testing.T) {
	var book engine.Book[*box]
	book.Lock()
	for _, name := range []string{"b", "a"} {
		book.Put(name, &box{name: name})
	}
	book.Unlock()
	due := func(want ...string) {
		t.Helper()
		if got := book.Due(); !slices.Equal(got, want) {
			t.Errorf("due are %q, want %q", got, want)
		}
		for _, name := range []string{"a", "b", "none"} {
			if got := book.IsDue(name); got != slices.Contains(want, name) {
				t.Errorf("%s is due is %v", name, got)
			}
		}
	}
	due("a", "b")
	asked := book.Asked()
	for _, b := range book.All() {
		b.Mark.Read(asked)
	}
	due()
	book.Changed("none")
	due()
	book.Changed("b")
	due("b")
	book.ChangedAll()
	due("a", "b")
	for name := range book.All() { // a loop may end before the last unit
		if name == "a" {
			break
		}
	}
}

func TestAUnitWhoseToolsAreSilentHoldsUpNoOther(t *testing.T) {
	var book engine.Book[*box]
	book.Lock()
	book.Put("a", &box{Account: engine.Account{Silent: errStuck}})
	book.Put("b", &box{})
	book.Unlock()
	if due, silent := book.Due(), book.Silent(); !slices.Equal(due, []string{"b"}) || !slices.Equal(silent, []string{"a"}) {
		t.Errorf("due are %q, silent are %q", due, silent)
	}
}

func TestAUnitThatIsDroppedIsNotYielded(t *testing.T) {
	var book engine.Book[*box]
	book.Lock()
	book.Put("a", &box{Account: engine.Account{Read: time.Unix(1, 0)}})
	book.Put("b", &box{})
	book.Unlock()
	for name := range book.All() {
		if name != "a" {
			t.Errorf("%s is yielded", name)
		}
		book.Drop("b")
	}
	if name, ok := book.Unread(); ok {
		t.Errorf("%q was not read", name)
	}
}
