// Package sandbox confines engine processes: to the files that a run needs, to no privileges, and
// to signals among themselves.
//
// A confined process starts as a launcher: a process of this same program that, if a certain
// environment variable is set, confines itself and then becomes the engine. Everything that the
// engine starts is confined as well, and cannot undo it:
//
//   - no new privileges (PR_SET_NO_NEW_PRIVS) and no capabilities, even if this process runs as
//     root;
//   - only the files that the [Policy] names and those of the system, by Landlock. That excludes
//     the service account's token, other runs, and the memory and environment of processes outside;
//   - no signals to processes outside and no connections to their abstract sockets, by Landlock if
//     the kernel supports that.
//
// The network stays open. docs/adr/0011-confine-engines-by-landlock.md explains why, and
// docs/security.md what the sandbox does not stop.
package sandbox
