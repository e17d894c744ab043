// Package live previews what an edit would do to the existing Machines of a cluster. It reads Machines and their
// states, asks the actuator for its decisions, plans the changes, and returns a [preview.Preview]. It writes nothing to
// the cluster and takes no lock, so the preview is only as current as what it read.
package live
