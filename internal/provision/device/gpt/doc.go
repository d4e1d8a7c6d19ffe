// Package gpt writes and reads GUID partition tables as values: a disk with one
// partition becomes five blocks in the order in which they must be written, and the
// beginning and end of a disk become what its two tables say.
//
// It is no general editor. It writes tables of one partition only, and the blocks of
// such a table follow from the partition and the disk's size alone: so what was begun
// can be recognised and finished from any one of its entries.
package gpt
