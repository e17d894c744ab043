// Package manifest turns manifests into inputs: it reads MachineSets and Machines from files, completes them as admission does, checks
// them, and renders the variables of one representative Machine of each. All that is wrong is reported at once, each problem with file,
// line, field and fix. Apart from reading files it is pure.
package manifest
