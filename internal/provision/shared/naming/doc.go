// Package naming says whether two names are of one shared disk.
package naming
