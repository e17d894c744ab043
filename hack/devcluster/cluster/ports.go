package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
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

// portsOf lists the ports that a component listens on, its serving port first.
func portsOf(component Component) []portName {
	switch component {
	case Etcd:
		return []portName{portEtcd, portEtcdPeer}
	case APIServer:
		return []portName{portAPIServer}
	case ControllerManager:
		return []portName{portControllerManager}
	case Scheduler:
		return []portName{portScheduler}
	case KWOK:
		return []portName{portKWOK}
	}
	return nil
}

// portSource finds free ports; tests replace it.
type portSource struct {
	free func(port int) bool
	pick func() int
}

// assignPorts keeps each remembered port that is free or whose component runs, and picks new ones for the rest. It
// returns all ports and the components whose port changed.
func assignPorts(remembered map[portName]int, running map[Component]bool,
	source portSource) (map[portName]int, []Component, error) {
	ports := map[portName]int{}
	taken := map[int]bool{}
	for _, component := range Components() {
		for _, name := range portsOf(component) {
			if port := remembered[name]; port != 0 && (running[component] || source.free(port)) {
				ports[name] = port
				taken[port] = true
			}
		}
	}
	var moved []Component
	for _, component := range Components() {
		complete := true
		for _, name := range portsOf(component) {
			if ports[name] != 0 {
				continue
			}
			complete = false
			port, err := pickPort(taken, source)
			if err != nil {
				return nil, nil, fmt.Errorf("choosing a port for %s: %w", name, err)
			}
			ports[name] = port
			taken[port] = true
		}
		if !complete {
			moved = append(moved, component)
		}
	}
	return ports, moved, nil
}

func pickPort(taken map[int]bool, source portSource) (int, error) {
	const attempts = 1000
	for range attempts {
		if port := source.pick(); !taken[port] && source.free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 in %d attempts; end some of the programs that listen there",
		attempts)
}

// mustRestart lists the components whose configuration changed: all if certificates changed, otherwise the clients of a
// component whose port changed.
func mustRestart(moved []Component, certificatesChanged bool) map[Component]bool {
	restart := map[Component]bool{}
	if certificatesChanged {
		for _, component := range Components() {
			restart[component] = true
		}
		return restart
	}
	for _, component := range moved {
		switch component {
		case Etcd:
			restart[APIServer] = true
		case APIServer:
			restart[ControllerManager] = true
			restart[Scheduler] = true
			restart[KWOK] = true
		case ControllerManager, Scheduler, KWOK: // no configuration contains their ports
		}
	}
	return restart
}

// systemPorts picks ports below the kernel's ephemeral range. Otherwise an outgoing connection could take the port of a
// stopped component.
func systemPorts() portSource {
	const lowest = 20000
	highest := 32767
	if data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if ephemeral := parseLowestEphemeral(string(data)); ephemeral > lowest+1000 {
			highest = ephemeral - 1
		}
	}
	return portSource{
		free: portIsFree,
		pick: func() int { return lowest + rand.IntN(highest-lowest+1) },
	}
}

// parseLowestEphemeral returns the first number of the kernel's port range, or 0.
func parseLowestEphemeral(portRange string) int {
	fields := strings.Fields(portRange)
	if len(fields) == 0 {
		return 0
	}
	low, err := strconv.Atoi(fields[0])
	if err != nil {
		return 0
	}
	return low
}

func portIsFree(port int) bool {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
