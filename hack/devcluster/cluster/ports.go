package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

type portName string

const (
	portEtcd              portName = "etcd"
	portEtcdPeer          portName = "etcd-peer"
	portAPIServer         portName = "kube-apiserver"
	portControllerManager portName = "kube-controller-manager"
	portScheduler         portName = "kube-scheduler"
	portKWOK              portName = "kwok"
)

// portsOf has the ports that a component listens on, its serving port first.
var portsOf = map[Component][]portName{
	Etcd:              {portEtcd, portEtcdPeer},
	APIServer:         {portAPIServer},
	ControllerManager: {portControllerManager},
	Scheduler:         {portScheduler},
	KWOK:              {portKWOK},
}

// portSource finds free ports; tests replace it.
type portSource struct {
	free func(port int) bool
	pick func() int
}

// assignPorts keeps each remembered port that is free or whose component runs, picks new ones for the rest, and reports
// whether there are any.
func assignPorts(remembered map[portName]int, running map[Component]bool,
	source portSource) (ports map[portName]int, moved bool, err error) {
	ports = map[portName]int{}
	var open []portName
	for _, component := range Components() {
		for _, name := range portsOf[component] {
			if port := remembered[name]; port != 0 && (running[component] || source.free(port)) {
				ports[name] = port
			} else {
				open = append(open, name)
			}
		}
	}
	for _, name := range open {
		if ports[name], err = pickPort(slices.Collect(maps.Values(ports)), source); err != nil {
			return nil, false, fmt.Errorf("choosing a port for %s: %w", name, err)
		}
	}
	return ports, len(open) > 0, nil
}

func pickPort(taken []int, source portSource) (int, error) {
	const attempts = 1000
	for range attempts {
		if port := source.pick(); !slices.Contains(taken, port) && source.free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 in %d attempts; end some of the programs that listen there",
		attempts)
}

// systemPorts picks ports below the kernel's usual ephemeral range. Otherwise an outgoing connection could take the
// port of a stopped component.
func systemPorts() portSource {
	const lowest, highest = 20000, 32767
	return portSource{
		free: portIsFree,
		pick: func() int { return lowest + rand.IntN(highest-lowest+1) },
	}
}

func portIsFree(port int) bool {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
