// Package backend serves the http backend of Terraform and OpenTofu on loopback. Each [Endpoint] reads and writes the
// state of one [state.Session] with its own password. Package state tests it, since both need the same API server.
package backend
