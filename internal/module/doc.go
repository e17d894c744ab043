// Package module loads a provider module (a folder of HCL with a module.yaml), holds it to the contract that
// docs/contracts/module.md describes, and answers what the rest of the operator asks of it: its content and digest, the types
// of its variables, the providers it pins, and which module serves a providerSpec. A stack is a module whose program Pulumi runs;
// docs/contracts/stack.md says where it differs.
//
// Modules are read, never run: no expression of a module is evaluated here but literals, types, the validations of its variables and the
// locals of a stack, whose functions can reach nothing but their arguments.
package module
