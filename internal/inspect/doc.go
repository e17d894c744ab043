// Package inspect shows people what a cluster has of Machines: MachineSets with their Machines, instances and Nodes, the states behind
// them, runs, and drift. [Cluster] reads what a [Selection] stands for, functions such as [Tree] and [Runs] make reports of it, and [Printer]
// prints them.
package inspect
