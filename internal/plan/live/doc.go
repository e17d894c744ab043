// Package live plans what an edit would do to the Machines that a cluster has. It reads Machines and their states, asks the actuator what
// it would do, has the changes planned, and returns the outcome as a [preview.Preview]. It writes nothing to the cluster, and takes no
// lock: what it says is as old as what it read.
package live
