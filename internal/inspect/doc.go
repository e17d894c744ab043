// Package inspect tells people what a cluster knows of Machines: MachineSets with their Machines, instances and Nodes, the states behind
// them, runs, and drift. [Cluster] reads; everything else is made from [Facts] and changes nothing.
package inspect
