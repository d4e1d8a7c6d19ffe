// Package blockdev is what provisioners share of the kernel's block devices: which
// of them a writer has closed, that came or that went, what they are, wherever their nodes
// lead, and reading and wiping them past the page cache.
package blockdev
