// Package preview plans what manifests request and puts the result together: for each MachineSet and Machine what would be created, and,
// against a cluster, what would happen to the Machines that exist. [Preview] is also the JSON and YAML that users read.
//
// A plan takes five steps, each in a package: manifest reads, completes and checks; its inputs go to offline, or to program for stacks,
// where an engine plans; diff turns a plan into changes; preview puts them together; print prints them. docs/preview.md describes what is
// known before anything exists.
package preview
