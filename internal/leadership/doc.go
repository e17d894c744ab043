// Package leadership tracks the epoch in which this process leads, how long it leads, and which
// other epochs have ended.
//
// client-go's leader election elects the leader. It accesses the Lease through this package's lock
// ([Leadership.ResourceLock]), so that the package observes each renewal and each change of the
// holder. Before an action that must not overlap with another leader, call [Leadership.Confirm].
// Before one that must follow another leader's end, call [Leadership.DeadIn].
//
// The engines of a silent leader live for a while. Until the renew deadline, a manager sends
// heartbeats to its supervisor. The supervisor waits for the heartbeat timeout, interrupts the
// engines, and kills them after the grace period. All of this fits into the lease duration that
// another candidate waits ([Timing]).
//
// Times are differences of one process's clock; clocks of different processes are never compared.
// Waiting for others uses the monotonic clock. The age of this process's own renewals and reads is
// the maximum by the monotonic and the wall clock, because the monotonic clock stops while a
// machine sleeps or is paused.
//
// A Lease that goes back in time shows that etcd was restored under the leader. The leader exits,
// because its knowledge belongs to another history. The next term is younger than the restore, and
// [Leadership.Began] tells which objects may predate the term.
package leadership
