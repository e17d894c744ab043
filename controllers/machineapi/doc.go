// Package machineapi holds the conventions of OpenShift's Machine API that several controllers follow: its conditions, which have a type
// of their own, phases, which API is authoritative for an object, and which Machines refer to a Node.
package machineapi
