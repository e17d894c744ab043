// Package leadership knows in which epoch this process leads, until when, and which other epochs are over.
//
// client-go's leader election decides who leads. It speaks to the Lease through the lock that this package gives it
// ([Leadership.ResourceLock]), so that the package sees each renewal, and sees at once when the Lease is another's. What must not happen
// beside another leader asks [Leadership.Confirm] before; what may only happen after another leader's end asks [Leadership.DeadIn].
//
// Engines of a leader that went silent live for a while: until the renew deadline its manager sends heartbeats to its supervisor, which
// waits for the heartbeat timeout, interrupts the engines, and kills them after the grace. All of this fits into the lease duration that
// another candidate waits ([Timing]). Times are differences of a monotonic clock of one process; no two clocks are compared.
package leadership
