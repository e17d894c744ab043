// Package batch has one process of OpenTofu or Terraform serve several Machines of one module. It is pure: it makes the root module that calls the module
// once for each Machine, and the variables and the state of that root module; it takes apart what the engine reports and writes of it into what each Machine would have alone; and
// it says which Machines a plan has found as applied.
package batch
