// Package memory is a mounter that mounts nothing: it keeps the mount table of a
// simulated node. It makes real mount points, so that a test that looks for the
// directory or file of a published volume finds it.
package memory
