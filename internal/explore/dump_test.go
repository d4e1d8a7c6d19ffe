package explore

import (
	"encoding/binary"
	"reflect"
)

// dump writes a world down with everything in it, as it is: names, numbers and
// history. It does not judge which parts matter, so canon is compared with it.
type dump struct {
	b        []byte
	versions bool // earlier ones of the record are state too
	fields   map[reflect.Type][]int
}

// stated are the fields of a struct that are state.
func (p *dump) stated(t reflect.Type) []int {
	if fields, ok := p.fields[t]; ok {
		return fields
	}
	fields := []int{}
	for i := range t.NumField() {
		if name := t.Field(i).Name; !unstated[name] || name == "before" && p.versions {
			fields = append(fields, i)
		}
	}
	if p.fields == nil {
		p.fields = map[reflect.Type][]int{}
	}
	p.fields[t] = fields
	return fields
}

// unstated are the fields that are no state: the tools that the world works with,
// and the version counter, which is only ever compared.
var unstated = map[string]bool{"rules": true, "scratch": true, "story": true, "verbose": true, "rv": true, "before": true,
	"revisions": true, "backup": true, "writes": true, "now": true}

func (p *dump) key(w *World) [2]uint64 {
	p.b = p.b[:0]
	p.value(reflect.ValueOf(*w))
	for i := range w.nodes {
		d := w.nodes[i].pending
		p.n(d != nil && d.read == w.server.current)
	}
	for i := range w.ctl {
		d := w.ctl[i].pending
		p.n(d != nil && d.read == w.server.current)
	}
	return fingerprint(p.b)
}

func (p *dump) n(v bool) {
	if v {
		p.b = append(p.b, 1)
		return
	}
	p.b = append(p.b, 0)
}

func (p *dump) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if p.n(v.IsNil()); !v.IsNil() {
			p.value(v.Elem())
		}
	case reflect.Struct:
		for _, i := range p.stated(v.Type()) {
			p.value(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Array && v.Type().Elem().Kind() == reflect.Uint8 {
			for i := range v.Len() {
				p.b = append(p.b, byte(v.Index(i).Uint()))
			}
			return
		}
		p.b = binary.AppendUvarint(p.b, uint64(v.Len()))
		for i := range v.Len() {
			p.value(v.Index(i))
		}
	case reflect.String:
		p.b = binary.AppendUvarint(p.b, uint64(v.Len()))
		p.b = append(p.b, v.String()...)
	case reflect.Bool:
		p.n(v.Bool())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.b = binary.AppendUvarint(p.b, v.Uint())
	case reflect.Int, reflect.Int64:
		p.b = binary.AppendVarint(p.b, v.Int())
	default:
		panic("a world holds a " + v.Kind().String())
	}
}
