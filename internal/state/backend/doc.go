// Package backend serves the http backend of Terraform and OpenTofu on loopback. Each [Endpoint] reads and writes the state of one
// [state.Session], with a password of its own. The tests are those of package state, which need the same API server.
package backend
