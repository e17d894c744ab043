// Package state stores each Machine's engine state in Kubernetes Secrets. Package backend serves
// the states to engines.
//
// The concepts:
//
//   - Key names one Machine's state. KeyFor derives it from the Machine's UID, so it is never
//     stored.
//   - Store reads states. It caches nothing: every call reads the API server.
//   - Session is the only way to write. Store.Acquire takes the persisted lock and returns a
//     session. Each write carries the Secret's resourceVersion and fails once the session has lost
//     the lock.
//   - Snapshot is a state as it was read; statefile.Parse turns its bytes into outputs and
//     resources.
//   - Epoch is one term of a leading manager. Locks and heads record it; a manager that finds a
//     later epoch than its own writes nothing.
//   - Orphan is a state that could not be saved as its Machine's. statefile.Compare returns the
//     resources that only the orphan knows.
//   - backend.Server serves the engines' http backend on loopback, with one Session per Endpoint.
//
// The head Secret, and the part Secrets of a state that exceeds one Secret, have the layout of
// Terraform's kubernetes backend. Data that this layout has no place for is in one annotation of
// the head, the record: earlier versions, checksums, and the names of the state's other Secrets.
// Package layout decides what goes where. Every change is committed by one write of the head.
// docs/contracts/state.md describes the layout.
package state
