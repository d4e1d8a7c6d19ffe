//go:build !amd64

package tsc

var read counter
