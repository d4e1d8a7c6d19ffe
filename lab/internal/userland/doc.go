// Package userland makes the root filesystem of images that need Debian's
// storage tools: the packages and their dependencies, unpacked, without parts that
// a container does not need (documentation, translations, the package manager,
// interpreters). The packages' licences and descriptions stay. It needs no root, runs no
// script of a package and no program of one: the machine may have another architecture.
package userland
