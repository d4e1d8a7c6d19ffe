package record

import (
	"strings"
	"testing"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

func TestAnOrderIsReadAsItWasWritten(t *testing.T) {
	for _, o := range []ownership.Order{
		{ID: "1", Wish: ownership.ToAttach, State: ownership.Placed, Since: time.Unix(1, 0)},
		{ID: "2", Wish: ownership.ToAttach, State: ownership.Carried, Since: time.Unix(2, 0)},
		{ID: "3", Wish: ownership.ToAttach, State: ownership.Refused, Since: time.Unix(3, 0), Problem: "no slot"},
		{ID: "4", Wish: ownership.ToDetach, State: ownership.Placed, Since: time.Unix(4, 0)},
	} {
		written := OrderInto("simcloud:///one", "v", o)
		if got, err := OrderFrom(&written); err != nil || got != o || written.Handle != "simcloud:///one" || written.Volume != "v" {
			t.Errorf("%+v is read as %+v, %v", o, got, err)
		}
		if written.Wish != v1alpha1.DiskWish(o.Wish.String()) || written.State != v1alpha1.DiskOrderState(o.State.String()) {
			t.Errorf("%+v is written as %s, %s", o, written.Wish, written.State)
		}
	}
}

func TestAnOrderWithAWordThatNoRuleWritesIsNotRead(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.DiskOrder){
		"a wish":  func(o *v1alpha1.DiskOrder) { o.Wish = "Borrow" },
		"a state": func(o *v1alpha1.DiskOrder) { o.State = "" },
		"no id":   func(o *v1alpha1.DiskOrder) { o.ID = "" },
	} {
		o := OrderInto("simcloud:///one", "v", ownership.Order{ID: "1"})
		change(&o)
		if got, err := OrderFrom(&o); err == nil || !strings.Contains(err.Error(), "simcloud:///one") {
			t.Errorf("%s: it is read as %+v, %v", name, got, err)
		}
	}
}

func TestAProblemOfAnOrderFitsIntoItsField(t *testing.T) {
	o := OrderInto("simcloud:///one", "v", ownership.Order{ID: "1", Problem: strings.Repeat("ä", 2000)})
	if n := len([]rune(o.Problem)); n != maxProblem {
		t.Errorf("it has %d characters", n)
	}
}
