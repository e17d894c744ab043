// Package batch has one process of OpenTofu or Terraform check several Machines of one module for drift. It is pure: it makes the root module that
// calls the module once for each Machine, the variables and the state of that root module, and reads from the report of a plan which Machines
// are as applied. Of the others it says nothing: they are checked alone.
package batch
