// Package duplicate copies the content of one device to another. Its callers open the devices.
package duplicate
