// Package backup writes the states of Machines into a folder, with all that they are of use with, and puts them back.
//
//   - Source collects a Backup from a cluster: states with what is recorded beside them, the modules that they refer to, the keys of
//     Pulumi's checkpoints.
//   - Folder is where a Backup is kept: files that only their owner may read, written whole or not at all, encrypted on request.
//   - Target checks what may be put back into a cluster, and does that: each state for itself, through package state.
//
// docs/backup.md describes the files.
package backup
