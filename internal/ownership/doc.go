// Package ownership decides who may write a volume, which copies count, and what
// happens to the others.
package ownership
