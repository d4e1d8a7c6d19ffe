package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// box is a unit that holds a list of things.
type box struct {
	name   string
	things []string
	engine.Account
}

// shelf is a backend of boxes. world has the things that are really in each box.
type shelf struct {
	*engine.Engine[*box]
	world map[string][]string
	// unfit is the error of Fit.
	unfit error
	// cleared says that LookAgain removed something that was in the way.
	cleared bool
	looks   int
	// look is called when LookAgain reads the unit.
	look func()
	// reading is called when Refresh begins.
	reading func(name string)
	loaded  int
	// hidden is why Discover fails.
	hidden error
	ended  atomic.Int64
	// early says that Changed was set before the change had ended.
	early bool
}

func (s *shelf) Discover(context.Context) error {
	s.Lock()
	defer s.Unlock()
	if s.hidden != nil {
		return s.hidden
	}
	for name := range s.world {
		if s.Units()[name] == nil {
			s.Put(name, &box{name: name})
		}
	}
	return nil
}

func (s *shelf) Loaded(context.Context) { s.loaded++ }

func (s *shelf) Refresh(_ context.Context, name string) {
	asked := s.Asked()
	if s.reading != nil {
		s.reading(name)
	}
	s.With(name, func(b *box) {
		if b != nil {
			b.things, b.Read = slices.Clone(s.world[name]), time.Unix(1, 0)
			b.Mark.Read(asked)
		}
	})
}

func (s *shelf) LookAgain(ctx context.Context, name string) bool {
	s.looks++
	if s.look != nil {
		s.look()
	}
	s.Refresh(ctx, name)
	return s.cleared
}

func (s *shelf) Fit(*box, string, []engine.Step[*box]) error { return s.unfit }

func (s *shelf) Ended(context.Context, string) {
	s.ended.Add(1)
	select {
	case <-s.Changed:
		s.early = true
	default:
	}
}

// newShelf returns a shelf with one box that holds some things and was read.
func newShelf(t *testing.T, together bool, things ...string) *shelf {
	t.Helper()
	s := &shelf{world: map[string][]string{"a": things}}
	s.Engine = engine.New(engine.Config[*box]{Backend: s, Noun: "box", Together: together, Now: time.Now})
	if err := s.LoadOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// put is a change that puts a thing into the box, by an effect that may fail.
func (s *shelf) put(thing string, effect func() error) engine.Change[*box] {
	return engine.Change[*box]{Unit: "a", ID: thing, Plan: func(b *box, _ bool) ([]engine.Step[*box], error) {
		if slices.Contains(b.things, thing) {
			return nil, nil
		}
		return []engine.Step[*box]{{Name: "put " + thing, Takes: 1, Pool: "a", Do: func(context.Context) (func(*box), error) {
			if err := effect(); err != nil {
				return nil, err
			}
			return func(b *box) { b.things = append(b.things, thing) }, nil
		}}}, nil
	}}
}

var errStuck = errors.New("it is stuck")

func TestTheFactsDecideHowAChangeEndsAndNotTheCommandsMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		// fails is how often the effect fails. done says that it is there all the same.
		fails   int
		done    bool
		cleared bool
		unfit   error
		known   bool
		want    error
		tries   int
		looks   int
	}{
		"the command makes the change":                                {tries: 1},
		"the change was made before":                                  {known: true},
		"the command fails, and the change is there all the same":     {fails: 9, done: true, tries: 1, looks: 1},
		"the command fails, and the facts stay the same":              {fails: 9, want: errStuck, tries: 1, looks: 1},
		"the command fails, and an obstacle goes":                     {fails: 1, cleared: true, tries: 2, looks: 1},
		"the command fails however many obstacles go":                 {fails: 99, cleared: true, want: errStuck, tries: 4, looks: 4},
		"the unit may not be changed, and the error says so":          {unfit: provision.ErrUnavailable, want: provision.ErrUnavailable, looks: 1},
		"the unit may not be changed, and the change was made before": {unfit: provision.ErrUnavailable, known: true},
	} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, together is %v", name, together), func(t *testing.T) {
				var things []string
				if tc.known {
					things = []string{"new"}
				}
				s := newShelf(t, together, things...)
				s.cleared, s.unfit = tc.cleared, tc.unfit
				tries := 0
				err := s.CarryOut(t.Context(), s.put("new", func() error {
					if tries++; tries > tc.fails {
						return nil
					}
					if tc.done {
						s.world["a"] = []string{"new"}
					}
					return errStuck
				}))
				if !errors.Is(err, tc.want) || tries != tc.tries || s.looks != tc.looks {
					t.Errorf("%v after %d tries and %d looks; want %v, %d, %d", err, tries, s.looks, tc.want, tc.tries, tc.looks)
				}
				if n := s.ended.Load(); n != 1 {
					t.Errorf("its end was told %d times", n)
				}
				s.With("a", func(b *box) {
					if ended, _ := b.Activity(); b.Busy() || b.Promised("") != 0 || (ended > 0) != (tries > 0) {
						t.Errorf("%d changes ended after %d tries, busy is %v, %d bytes are promised", ended, tries, b.Busy(), b.Promised(""))
					}
				})
			})
		}
	}
}

func TestTheLeftoversOfAFailedChangeAreUndone(t *testing.T) {
	s := newShelf(t, false)
	c, undone := s.put("new", func() error { return errStuck }), 0
	c.Undo = func(*box, bool) ([]engine.Step[*box], error) {
		return []engine.Step[*box]{{Do: func(context.Context) (func(*box), error) { undone++; return func(*box) {}, nil }}}, nil
	}
	if err := s.CarryOut(t.Context(), c); !errors.Is(err, errStuck) || undone != 1 {
		t.Errorf("%v, taken back %d times", err, undone)
	}
	c.Plan = s.put("new", func() error { return nil }).Plan
	if err := s.CarryOut(t.Context(), c); err != nil || undone != 1 {
		t.Errorf("%v, taken back %d times", err, undone)
	}
}

func TestNoStepOfAPlanThatFailsIsTaken(t *testing.T) {
	s := newShelf(t, false)
	var taken []string
	steps := func(name string) []engine.Step[*box] {
		return []engine.Step[*box]{{Do: func(context.Context) (func(*box), error) {
			taken = append(taken, name)
			return func(*box) {}, nil
		}}}
	}
	err := s.CarryOut(t.Context(), engine.Change[*box]{
		Unit: "a", ID: "new",
		Plan: func(*box, bool) ([]engine.Step[*box], error) { return steps("plan"), errStuck },
		Undo: func(*box, bool) ([]engine.Step[*box], error) { return steps("undo"), errStuck },
	})
	if !errors.Is(err, errStuck) || taken != nil {
		t.Errorf("%v, and the steps of %q were taken", err, taken)
	}
}

func TestAChangeMayMakeItsUnit(t *testing.T) {
	s := newShelf(t, false)
	made := false
	err := s.CarryOut(t.Context(), engine.Change[*box]{Unit: "b", ID: "new", Plan: func(b *box, _ bool) ([]engine.Step[*box], error) {
		if b != nil {
			t.Error("the unit is known already")
		}
		return []engine.Step[*box]{{Takes: 1, Do: func(context.Context) (func(*box), error) {
			made = true
			return func(*box) { t.Error("the unit that was not read learns of the step") }, nil
		}}}, nil
	}})
	if err != nil || !made {
		t.Errorf("%v, made is %v", err, made)
	}
}

func TestAFailureInAUnitThatIsNotKnownIsReturnedAsItIs(t *testing.T) {
	s := newShelf(t, false)
	c := s.put("new", func() error { return errStuck })
	c.Unit = "b"
	c.Plan = func(*box, bool) ([]engine.Step[*box], error) {
		return s.put("new", func() error { return errStuck }).Plan(&box{}, true)
	}
	c.Refused = func(*box, error) error { return provision.ErrConflict }
	c.Undo = func(b *box, _ bool) ([]engine.Step[*box], error) {
		if b == nil {
			t.Error("a change of no unit is undone")
		}
		return nil, nil
	}
	if err := s.CarryOut(t.Context(), c); !errors.Is(err, errStuck) {
		t.Error(err)
	}
	c.Unit = "a"
	s.look = func() { s.With("a", func(b *box) { b.Silent = errStuck }) }
	if err := s.CarryOut(t.Context(), c); !errors.Is(err, errStuck) || errors.Is(err, provision.ErrConflict) {
		t.Errorf("%v of a unit whose tools are silent", err)
	}
	s.look = func() { s.With("a", func(b *box) { b.Silent = nil }) }
	if err := s.CarryOut(t.Context(), c); !errors.Is(err, provision.ErrConflict) {
		t.Error(err)
	}
}

func TestAChangeGoesOnWithTheStepThatIsNextByTheFacts(t *testing.T) {
	s := newShelf(t, false)
	first, second := s.put("one", func() error { s.world["a"] = []string{"one"}; return errStuck }), s.put("two", func() error { return nil })
	c := engine.Change[*box]{Unit: "a", ID: "both", Plan: func(b *box, fresh bool) ([]engine.Step[*box], error) {
		if b.Promised("") != 0 {
			t.Error("the change competes with itself for room")
		}
		steps, err := first.Plan(b, fresh)
		more, _ := second.Plan(b, fresh)
		return append(steps, more...), err
	}}
	if err := s.CarryOut(t.Context(), c); err != nil {
		t.Error(err)
	}
	s.With("a", func(b *box) {
		if !slices.Equal(b.things, []string{"one", "two"}) {
			t.Errorf("it holds %q", b.things)
		}
	})
}

func TestAUnitIsBusyWithAChangeThatHasNoPlan(t *testing.T) {
	s := newShelf(t, false)
	busy := func(want bool) {
		t.Helper()
		s.With("a", func(b *box) {
			if b.Busy() != want {
				t.Errorf("busy is %v", b.Busy())
			}
		})
	}
	ended, gone := s.Begin("a", "tidy"), s.Begin("b", "tidy")
	busy(true)
	gone()
	busy(true)
	ended()
	busy(false)
}

func TestTheRoomOfAStepIsPromisedInItsPoolUntilTheStepIsTaken(t *testing.T) {
	s := newShelf(t, false)
	step := func(pool string, takes, promised int64) engine.Step[*box] {
		return engine.Step[*box]{Takes: takes, Pool: pool, Do: func(context.Context) (func(*box), error) {
			s.With("a", func(b *box) {
				if here, all := b.Promised("a"), b.Promised(""); here != promised || all != promised {
					t.Errorf("%d bytes are promised in the pool and %d in all, want %d", here, all, promised)
				}
			})
			return func(*box) {}, nil
		}}
	}
	if err := s.CarryOut(t.Context(), engine.Change[*box]{Unit: "a", ID: "new", Plan: func(*box, bool) ([]engine.Step[*box], error) {
		return []engine.Step[*box]{step("a", 3, 8), step("", 0, 5), step("a", 5, 5), step("", 0, 0)}, nil
	}}); err != nil {
		t.Error(err)
	}
}

func TestAReportIsAskedForOnceTheLockOfTheUnitIsFree(t *testing.T) {
	s := newShelf(t, false)
	if err := s.CarryOut(t.Context(), s.put("new", func() error { return nil })); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Changed:
	default:
		t.Error("no report is asked for")
	}
	if s.early {
		t.Error("a report is asked for while it would leave the unit out")
	}
}

func TestACallerThatGivesUpLeavesItsChangeToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, false)
		ctx, giveUp := context.WithCancel(t.Context())
		goOn := make(chan struct{})
		time.AfterFunc(time.Second, giveUp)
		time.AfterFunc(time.Minute, func() { close(goOn) })
		if err := s.CarryOut(ctx, s.put("new", func() error { <-goOn; return nil })); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		s.Tasks.Wait()
		s.With("a", func(b *box) {
			if !slices.Contains(b.things, "new") {
				t.Error("it was not made")
			}
		})
	})
}

func TestChangesOfAUnitRunTogetherOnlyWhereThatIsSaid(t *testing.T) {
	for name, together := range map[string]bool{"together": true, "one after the other": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t, together)
				most := s.atOnce(t, "", engine.Beside{})
				if want := map[bool]int{true: 3, false: 1}[together]; most != want {
					t.Errorf("%d ran at the same time, want %d", most, want)
				}
			})
		})
	}
}
