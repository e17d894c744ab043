// Package e2e tests the operator end to end on a development cluster, with the binaries from `make build`: Machines are
// created, scaled, drained, lose their instance or health, change and are deleted, while the manager is killed or
// stopped at the worst moments and the API server goes away.
//
//	make e2e                                              # everything, half an hour on two cores
//	make e2e-pulumi                                       # the same with Machines of stacks, run by Pulumi
//	make e2e TESTFLAGS='-ginkgo.focus="API server"'       # one chapter; each has its own setup
//	E2E_MANAGER_FLAGS=--warm-providers=0 make e2e         # with more manager flags
//
// E2E_ENGINE is the engine of the Machines: terraform (the default) or pulumi. Specs for one engine are labelled with
// its name, and skipped with the other. One chapter mixes Machines of both.
//
// The cluster's data folder is temporary. It is removed after success. After a failure the suite prints its path: it
// contains the logs of manager and cluster, and `bin/devcluster up --dir FOLDER` restarts the cluster.
//
// The tests observe the operator only from outside: through the API server, its metrics, its log and its processes.
package e2e
