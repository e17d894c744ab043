// Package sandbox confines the processes of engines: to the files that a run needs, to no privileges, and to signals among themselves.
//
// A process that is to be confined is started as a launcher first: a process of this same program, which knows by a variable of its
// environment what it is, confines itself and becomes the engine. All that the engine starts is confined with it, and cannot undo it:
//
//   - no new privileges (PR_SET_NO_NEW_PRIVS) and no capabilities, also where this process runs as root;
//   - files by Landlock: what the [Policy] names, and what belongs to the system. Not the token of the service account, other runs, or
//     the memory and environment of processes outside;
//   - by Landlock too, where the kernel's has it: no signals to processes outside and no connections to their abstract sockets.
//
// The network stays open. docs/adr/0011-confine-engines-by-landlock.md says why it is so, docs/security.md what it does not stop.
package sandbox
