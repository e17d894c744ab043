// Package remote executes runs in processes of their own, on this machine or another. A manager has
// a [Server], and each run a process that connects to it with the run's [Ticket]. The process
// receives the run's inputs over that connection, executes one operation at a time on the manager's
// request, and reads and writes the state through the manager. It needs no permissions in the
// cluster and keeps its inputs in memory. The package is independent of Kubernetes.
//
// A process regularly confirms that its manager leads. Without a confirmation its engine ends, as a
// manager's engines do when it loses its Lease.
package remote
