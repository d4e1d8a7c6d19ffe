// Package blockdevtest says which real block devices the platform tests of the provisioners
// may overwrite, writes to them and reads them back.
package blockdevtest
