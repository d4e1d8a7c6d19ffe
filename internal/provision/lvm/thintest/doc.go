// Package thintest tests thin pools on real LVM. Its platform tests run in a guest of their
// own, because together with those of package lvm they would take too long.
package thintest
