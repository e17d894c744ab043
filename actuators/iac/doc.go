// Package iac is the actuator that manages each Machine with infrastructure-as-code runs of its
// own. The module selects the engine: see package runner.
//
// A verb (verbs.go) observes the Machine, its state Secret and the pool's run, decides with
// [lifecycle.Decide], submits a run (submit.go) and publishes the result on the Machine
// (publish.go).
//
// A run (run.go) is a task, a look (look.go) or a search that only reads (inventory.go). A task
// (task.go) takes the lock, decides again, and executes and settles one operation: create.go,
// update.go, driftcheck.go, destroy.go and adopt.go (adoption and release). Operations share lookup.go, the engine's
// workspace.go and settle.go. Package recovery cleans up after dead processes, and package
// reporting reports outcomes. docs/architecture.md has the table of decisions.
//
// Required permissions in the Machines' namespace: secrets get, list, create, update, delete;
// events (events.k8s.io) create, patch.
package iac
