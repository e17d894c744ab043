// Package module is the model of a provider module: a folder of HCL with a module.yaml that
// OpenTofu or Terraform runs, or a stack, whose program Pulumi runs. It describes what a loaded
// module consists of and what it computes from a Machine's values. It reads no files and runs
// nothing. The packages below it, in import order:
//
//	credential What does a Secret with credentials contain, by key and by a path in documents?
//	hclfuncs   Which functions may an expression of a module call?
//	module     What is a module, which one serves a providerSpec, and what do its expressions evaluate to?
//	instance   What is known of an instance before it is created: its size, image and disks, and its place?
//	contract   Does a module comply with docs/contracts/module.md? Reads module.yaml and HCL, and reports every breach.
//	stack      Does a stack comply with docs/contracts/stack.md? Reads its program, its packages and its locals.
//	load       Which module is in a folder? Combines what contract and stack have read.
//	source     Where does a module come from? Archives, registries, web servers and files.
//	store      How does a cluster keep the modules that its Machines were created with?
//	scaffold   What does a new module start with?
//
// The only expressions of a module that are evaluated are literals, types, the validations and
// checks of variables, and the locals of a stack.
package module
