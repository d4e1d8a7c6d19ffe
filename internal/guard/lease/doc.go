// Package lease has the object on the API server by which a node's guard says that it keeps the
// self-fence contract: in this boot, counting over this set of nodes, with or without a watchdog.
package lease
