// Package remote carries runs out in processes of their own, on this machine or another: a manager has a [Server], each run a process that
// connects to it with the [Ticket] of the run. The process is given the run's inputs over that connection, carries out one operation at a time as the
// manager asks for it, and reads and writes the state through the manager. It needs no rights on the cluster, and what it is given is kept in
// memory. It knows no Kubernetes.
//
// A process proves again and again that its manager leads: without that its engine ends, as those of a manager do that has lost its Lease.
package remote
