// Package module is the model of a provider module: a folder of HCL with a module.yaml that OpenTofu or Terraform runs, or a stack, whose
// program Pulumi runs. It says what a loaded module is made of and what it computes from a Machine's values; it reads no file and runs nothing.
// The packages below it, in the direction in which they are imported:
//
//	credential What does a Secret with credentials hold, by key and by a path in documents?
//	hclfuncs   Which functions may an expression of a module call?
//	snapshot   What are a module's files, and their digest?
//	module     What is a module, which one serves a providerSpec, and what do its expressions evaluate to?
//	instance   What is known of an instance before it is made: its size, image and disks, and its place?
//	contract   Does a module keep docs/contracts/module.md? Reads module.yaml and HCL, and reports every breach.
//	stack      Does a stack keep docs/contracts/stack.md? Reads its program, its packages and its locals.
//	load       Which module is in a folder? Puts together what contract and stack have read.
//	source     Where does a module come from? Archives, registries, web servers and files.
//	store      How does a cluster keep the modules that its Machines were made with?
//	scaffold   What does a new module begin with?
//
// No expression of a module is evaluated but literals, types, the validations and checks of its variables and the locals of a stack.
package module
