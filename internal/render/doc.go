// Package render turns a Machine and its provider module into the inputs of a run: typed variables as JSON, an
// environment and a hash. Every function is pure, so that the operator, an admission webhook and an offline preview get
// the same result. [Render] returns the inputs of a run. [Check] returns what would be wrong with them before there are
// Secrets, a UID, or even a name.
//
// What a user writes stays data: a providerSpec is decoded as JSON, checked against the types and the validations of
// the module's variables and written as JSON again. Nothing of it becomes HCL, an argument or the name of an
// environment variable.
//
// A providerSpec may take addresses from pools. [AddressPools] returns them, and [ApplyAddresses] writes the addresses
// that the Machine was given into the providerSpec. Claims are made elsewhere.
package render
