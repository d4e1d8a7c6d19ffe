// Package controllertest runs the controller against a real API server, with
// nodes whose agents are scripts: they answer as an agent would, with an agent's
// token, out of pools that are numbers.
package controllertest
