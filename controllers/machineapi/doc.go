// Package machineapi holds conventions of OpenShift's Machine API shared by several controllers:
// conditions, which have a type of their own, phases, the authoritative API of an object, and the
// Machines that refer to a Node.
package machineapi
