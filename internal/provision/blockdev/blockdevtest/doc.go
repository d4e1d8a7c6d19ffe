// Package blockdevtest writes to real block devices and reads them back, for the platform
// tests of the provisioners.
package blockdevtest
