// Package iac is the actuator that manages each Machine with infrastructure-as-code runs of its
// own. The module selects the engine: see package runner.
//
// A verb (verbs.go) observes the Machine, its state Secret and the pool's run, decides with
// [lifecycle.Decide], submits a run (submit.go) and publishes the result on the Machine
// (publish.go). A run (task.go) takes the lock, decides again, executes (execute.go, destroy.go,
// lookup.go) and settles (settle.go). Package recovery cleans up after dead processes, and package
// reporting reports outcomes. docs/architecture.md has the table of decisions.
//
// Required permissions in the Machines' namespace: secrets get, list, create, update, delete;
// events (events.k8s.io) create, patch.
package iac
