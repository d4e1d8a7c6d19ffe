// Package gonetest makes a volume on a node that is gone, and the objects around it, for tests.
package gonetest
