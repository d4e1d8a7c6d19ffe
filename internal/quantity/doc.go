// Package quantity prints sizes for people.
package quantity
