// Package preview tells what MachineSets and Machines would create, from their manifests alone: it reads and completes them, checks and
// renders them as the operator does, has one representative Machine of each planned offline, and prints what came of it.
//
// docs/preview.md says what is known before anything exists, and what is not. Everything here but the reading of files is pure; the
// engine is behind [Planner].
package preview
