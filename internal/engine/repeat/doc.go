// Package repeat expands the repetitions in a Pulumi YAML program before Pulumi reads it, since
// Pulumi's YAML has neither loops nor conditions. A stack's program can write `each: {NAME:
// "${locals.LIST}"}` in a resource, and `fn::each: {NAME: "${locals.LIST}", make: ...}` in place of
// a value or variable. docs/contracts/stack.md describes both. The result depends only on the
// lengths of the locals' lists and on numbers in them: no text of a providerSpec gets into a
// program.
package repeat
