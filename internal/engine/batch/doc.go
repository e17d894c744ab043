// Package batch lets one process of OpenTofu or Terraform serve several Machines that use the same
// module. It is pure. It creates a root module that calls the module once for each Machine, with
// its variables and state. It splits the engine's reports and state by Machine, and determines
// which Machines a plan found unchanged.
package batch
