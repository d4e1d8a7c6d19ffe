// Package health says what is wrong with a volume on its node, for CSI's volume health.
//
// The decision is a function of facts: the record of the volume, what its Volume object asks of the node, the
// latest report of its pool, and whether its filesystem answers. What is said about a volume that the node
// does not have is never more than these show: data is called lost only if its pool was read without it.
package health
