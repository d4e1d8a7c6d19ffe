// Package events publishes what controllers tell their users at objects.
package events
