package poold

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
)

// filled returns a value without a zero field, so that a conversion that forgets a field
// fails the test.
func filled[T any]() (v T) {
	n := 0
	fill(reflect.ValueOf(&v).Elem(), &n)
	return v
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(*n), 0).UTC()))
			return
		}
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{fmt.Sprint("key ", *n): "value"}))
	default:
		panic("no value for a " + v.Kind().String())
	}
}

func TestEveryFieldCrossesTheWire(t *testing.T) {
	pool := filled[provision.Pool]()
	if diff := cmp.Diff(pool, poolFromWire(poolToWire(pool))); diff != "" {
		t.Errorf("a pool (-sent +received):\n%s", diff)
	}
	request := filled[provision.CreateRequest]()
	if diff := cmp.Diff(request, createFromWire(createToWire(request))); diff != "" {
		t.Errorf("a request (-sent +received):\n%s", diff)
	}
	limits := filled[provision.Limits]()
	if diff := cmp.Diff(limits, limitsFromWire(limitsToWire(limits))); diff != "" {
		t.Errorf("limits (-sent +received):\n%s", diff)
	}
}
