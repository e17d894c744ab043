// Package state keeps what an engine knows of each Machine's infrastructure in Kubernetes Secrets, for package backend to serve to engines.
//
// The words, and how they hang together:
//
//   - Key names one Machine's state. KeyFor derives it from the Machine's UID, so it never has to be stored.
//   - Store reads states. It holds nothing in memory: every call reads the API server.
//   - Session is the only way to write. Store.Acquire takes the persisted lock and returns one; each of its writes
//     carries the Secret's resourceVersion and is refused once the lock is no longer its own.
//   - Snapshot is a state as it was read; statefile.Parse turns its bytes into outputs and resources.
//   - Epoch is one term of the manager that leads. Locks and heads carry it; who meets a later one writes nothing.
//   - statefile.Compare says what a state that could not be saved knows that the stored one does not, and Orphan is such a state, kept.
//   - backend.Server speaks the engines' http backend on loopback, one Session per Endpoint.
//
// The head Secret and, past one Secret's size, its part Secrets have the layout of Terraform's own kubernetes backend.
// What that layout has no place for (earlier versions, checksums, which other Secrets belong to the state) is in one
// annotation of the head, the record; package layout decides what goes where. One write of the head is the commit of
// every change; docs/contracts/state.md shows the layout.
package state
