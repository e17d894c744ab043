// Package iac is the actuator that makes each Machine with a run of infrastructure as code of its own. The module
// decides which engine carries a run out: see package runner.
//
// A verb (verbs.go) observes the Machine, its state Secret and the run that the pool holds for it, decides with [lifecycle.Decide], submits a
// run (submit.go) and publishes on the Machine (publish.go). A run (task.go) takes the lock, decides again, executes (execute.go, destroy.go,
// lookup.go) and settles (settle.go). Package recovery deals with what a dead process has left, package reporting with what is reported of an
// outcome. docs/architecture.md has the table of decisions.
//
// Rights it needs, in the namespace of the Machines: secrets get, list, create, update, delete; events (events.k8s.io) create, patch.
package iac
