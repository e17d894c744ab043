// Package preview plans what manifests request: what each MachineSet and Machine would create and, against a cluster,
// what would happen to existing Machines. Users read a [Preview] as JSON and YAML, too.
//
// A plan takes five steps:
//
//  1. [Read] reads MachineSets and Machines from files, defaults them as admission does, and validates them. It reports
//     all problems at once, each with file, line, field and fix. It renders the variables of one representative Machine
//     of each object.
//  2. Package offline plans these inputs with an engine.
//  3. [Resources] turns a plan into changes: each resource's values as attributes with paths, what changes, and what
//     forces a replacement. It separates known values, values known after an apply, and sensitive values.
//  4. [Plan] combines the results.
//  5. [Print] prints a preview as text for people, as Markdown for pull requests, and as JSON or YAML.
//
// docs/preview.md describes what is known before anything exists.
package preview
