// Package iac is the actuator that makes each Machine with a run of infrastructure as code of its own. Which engine carries a run out is
// the module's matter: see package runner.
//
// A verb gathers the facts (the Machine, its state Secret, the run that the pool holds for it), decides with a pure function what
// is to be done, and starts or continues a run. docs/architecture.md has the table of decisions.
//
// Rights it needs, in the namespace of the Machines: secrets get, list, create, update, delete; events (events.k8s.io) create, patch.
package iac
