// Package repeat writes out what a program in Pulumi's YAML repeats, before Pulumi reads it. Pulumi's YAML has neither loops nor conditions. A
// program of a stack may say `each: {NAME: "${locals.LIST}"}` in a resource, and `fn::each: {NAME: "${locals.LIST}", make: ...}` in place of a
// value or of a variable; docs/contracts/stack.md describes both. What is written out depends on how long lists of the locals are, and on
// numbers in them: no text of a providerSpec gets into a program.
package repeat
