// Package e2e tests the operator end to end on a development cluster, against the binaries that `make build` has made: Machines
// come, are scaled, are drained, lose their instance or their health, change and go, while the manager is killed or stopped at the
// worst moments and the API server goes away.
//
//	make e2e                                              # everything, ten to fifteen minutes on two cores
//	make e2e-pulumi                                       # the same with Machines of stacks, which Pulumi runs
//	make e2e TESTFLAGS='-ginkgo.focus="API server"'       # one chapter; each sets up what it stands on
//	E2E_MANAGER_FLAGS=--warm-providers=0 make e2e         # with other flags for the manager
//
// E2E_ENGINE says what the Machines of the story run on: terraform, which is the default, or pulumi. What is tested with one engine alone bears
// that engine's name as its label, and is left out with the other. Machines of both meet in a chapter that either story has.
//
// The chapter about domains of another actuator needs a libvirt, and is there only where one runs: make e2e-libvirt runs it.
//
// The cluster's data folder is a temporary one. It is removed when all has passed, and kept and named when something has failed:
// the logs of manager and cluster lie in it, and `bin/devcluster up --dir FOLDER` brings the cluster back as it was.
//
// The tests look at the operator from outside only: through the API server, its metrics, its log and its processes.
package e2e
