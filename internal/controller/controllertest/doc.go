// Package controllertest runs the controller against a real API server. The agents of its nodes
// are scripts: they answer as an agent would, with an agent's token, and their pools are numbers.
package controllertest
