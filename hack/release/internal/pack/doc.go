// Package pack writes archives that depend on nothing but what is in them: the same files
// give the same bytes on every machine and day. An archive has no times, no owners and no
// order of its own.
package pack
