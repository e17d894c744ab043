// Package inspect shows people what a cluster has of Machines: MachineSets with their Machines, instances and Nodes, the states behind
// them, runs, and drift. [Cluster] reads what a [Selection] stands for, and functions such as [Tree] and [Runs] make reports of it, which package
// print prints. It also shows orphans, adoptions, and the content of a state with sensitive values masked.
package inspect
