// Package backup writes the states of Machines into a folder, with everything that they need, and
// restores them.
//
//   - Source collects a Backup from a cluster: states with their metadata, the modules that they
//     refer to, and the keys of Pulumi's checkpoints.
//   - Folder stores a Backup: files that only their owner can read, written atomically, encrypted
//     on request.
//   - Target checks what can be restored into a cluster and restores it: each state separately,
//     through package state.
//
// docs/backup.md describes the files.
package backup
