// Package gpt writes and reads GUID partition tables as values. It turns a partition into
// five blocks, in the order in which they must be written, and the beginning and end of a
// disk into its two tables.
//
// It is no general editor. It writes tables of one partition only. The blocks of such a
// table follow from the partition and the disk's size alone, so a table that was begun
// can be recognised and finished from any one of its entries.
package gpt
