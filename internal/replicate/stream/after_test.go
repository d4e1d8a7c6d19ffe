package stream

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"berth.dev/berth/internal/replicate/wire"
)

// reasons are the constants of type Reason in package wire, by their source.
func reasons(t *testing.T) (all []wire.Reason) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../wire/error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == "Reason" {
				text, _ := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				all = append(all, wire.Reason(text))
			}
		}
		return true
	})
	return all
}

func TestEachReasonHasACourse(t *testing.T) {
	all := reasons(t)
	if len(all) < 20 {
		t.Fatalf("%d reasons were found", len(all))
	}
	for _, r := range all {
		if _, ok := courses[r]; !ok {
			t.Errorf("nothing says what follows %s", r)
		}
	}
	if len(courses) != len(all) {
		t.Errorf("there are %d courses for %d reasons", len(courses), len(all))
	}
}

// What came before damage may be damaged, too: the sender's memory or its code is at fault.
func TestNothingIsKeptOfAStreamThatIsUnsound(t *testing.T) {
	for _, r := range []wire.Reason{
		wire.BadFrame, wire.TooLong, wire.WrongSum, wire.BadMessage, wire.BadPacking, wire.OutOfTurn, wire.WrongTotals, wire.WrongResume,
	} {
		if c := After(wire.Errorf(r, "x")); c.Keep || c.Next == GoOn {
			t.Errorf("after %s the receiver does %+v", r, c)
		}
	}
}

func TestAnUnknownReasonIsAFailure(t *testing.T) {
	for _, err := range []error{errors.New("x"), &wire.Error{Reason: "FromANewerVersion", Remote: true}} {
		if got := After(err); got != courses[wire.Failed] {
			t.Errorf("after %v the receiver does %+v", err, got)
		}
	}
}

func TestOnlyWhatFollowsFromAnEndIsExplainedByIt(t *testing.T) {
	stopped, told := errors.New("the agent stops"), told(wire.PoolFull, "no room")
	tests := map[string]struct {
		err, cause error
		want       wire.Reason
	}{
		"nothing failed":                     {nil, stopped, ""},
		"nothing ended":                      {wire.Errorf(wire.Cut, "x"), nil, wire.Cut},
		"a link that this node closed":       {wire.Errorf(wire.Cut, "x"), stopped, wire.Stopped},
		"a link that the peer's word ended":  {wire.Errorf(wire.Cut, "x"), told, wire.PoolFull},
		"a pool that was told to stop":       {stopped, stopped, wire.Stopped},
		"damage, while this node stops":      {wire.Errorf(wire.WrongSum, "x"), stopped, wire.WrongSum},
		"a full pool, while this node stops": {wire.Errorf(wire.PoolFull, "x"), stopped, wire.PoolFull},
		"all was sent, and nothing came":     {wire.Errorf(wire.Unconfirmed, "x"), wire.Errorf(wire.Cut, "x"), wire.Unconfirmed},
	}
	for name, test := range tests {
		ctx, end := context.WithCancelCause(t.Context())
		if test.cause != nil {
			end(test.cause)
		}
		if got := wire.ReasonOf(because(ctx, test.err)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		end(nil)
	}
}
