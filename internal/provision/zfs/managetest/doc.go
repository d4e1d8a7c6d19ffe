// Package managetest has the tests of zpools that Berth makes, on real ZFS and real disks.
package managetest
