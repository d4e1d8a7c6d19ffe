// Package pb is the generated wire form of poold's interface. Only package poold
// imports it.
package pb

//go:generate env GOWORK=off go run -C ../../../hack/protogen . internal/poold/pb/poold.proto internal/poold/pb/copies.proto
