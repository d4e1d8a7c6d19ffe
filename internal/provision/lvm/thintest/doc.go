// Package thintest tries thin pools on real LVM, with platform tests in a guest of
// their own: beside those of package lvm they would take too long.
package thintest
