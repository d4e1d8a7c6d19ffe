package entries

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxFieldManager is the API server's limit on a field manager's name.
	maxFieldManager = 128
	// maxMessage is the schema's limit on a message.
	maxMessage = 1024
)

// FieldManager is the name under which a node's agent applies its entries.
func FieldManager(node string) string {
	name := "agent-" + node
	if len(name) <= maxFieldManager {
		return name
	}
	sum := sha256.Sum256([]byte(node))
	return "agent-" + hex.EncodeToString(sum[:])
}

// Clip shortens a message to the schema's limit, at a rune's boundary.
func Clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Given returns nil for the zero value, so that the apply configuration leaves it out.
func Given[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Bytes returns a size as a quantity.
func Bytes(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }

// Copied returns a deep copy, or nil.
func Copied(q *resource.Quantity) *resource.Quantity {
	if q == nil {
		return nil
	}
	return new(q.DeepCopy())
}

// SameQuantity compares by value: the API server may write a quantity in another
// form.
func SameQuantity(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Cmp(*b) == 0
}
