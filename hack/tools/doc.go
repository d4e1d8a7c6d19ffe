// Package tools pins the generators that `make generate` runs. Each heavy tool
// has a module of its own, below this one, so that a linter's dependencies can
// never change what a generator writes.
package tools
