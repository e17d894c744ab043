// Package e2ejobs runs the manager with --runs-in=jobs on the development cluster: a real API server, Job controller
// and scheduler, and a node whose Pods are processes (test/nodeagent). It needs root.
package e2ejobs
