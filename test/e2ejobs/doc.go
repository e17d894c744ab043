// Package e2ejobs runs the manager with --runs-in=jobs on the development cluster: a real API server, a real Job controller and scheduler, and a node
// whose Pods are processes (hack/nodeagent). It needs root.
package e2ejobs
