package cluster

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakePorts returns 1001, 1002, ..., and treats the given ports as taken.
func fakePorts(taken ...int) portSource {
	next := 1000
	return portSource{
		free: func(port int) bool { return !slices.Contains(taken, port) },
		pick: func() int { next++; return next },
	}
}

func TestAssignPorts(t *testing.T) {
	remembered := func() map[portName]int {
		return map[portName]int{portEtcd: 1, portEtcdPeer: 2, portAPIServer: 3, portControllerManager: 4,
			portScheduler: 5, portKWOK: 6}
	}
	with := func(name portName, port int) map[portName]int {
		ports := remembered()
		ports[name] = port
		return ports
	}
	cases := map[string]struct {
		remembered map[portName]int
		running    map[Component]bool
		taken      []int
		want       map[portName]int
		wantMoved  bool
	}{
		"a new cluster gets six ports": {
			want: map[portName]int{
				portEtcd: 1001, portEtcdPeer: 1002, portAPIServer: 1003, portControllerManager: 1004,
				portScheduler: 1005, portKWOK: 1006,
			},
			wantMoved: true,
		},
		"free ports are kept": {
			remembered: remembered(), want: remembered(),
		},
		"a port that its own component holds is kept": {
			remembered: remembered(), running: map[Component]bool{APIServer: true}, taken: []int{3}, want: remembered(),
		},
		"a port that another program holds is replaced": {
			remembered: remembered(), taken: []int{3, 1001}, want: with(portAPIServer, 1002),
			wantMoved: true,
		},
		"a picked port is none of those that are kept": {
			remembered: with(portKWOK, 1001), taken: []int{2}, want: map[portName]int{
				portEtcd: 1, portEtcdPeer: 1002, portAPIServer: 3, portControllerManager: 4,
				portScheduler: 5, portKWOK: 1001,
			}, wantMoved: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, moved, err := assignPorts(tc.remembered, tc.running, fakePorts(tc.taken...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ports differ (-want +got):\n%s", diff)
			}
			if moved != tc.wantMoved {
				t.Errorf("moved is %t, want %t", moved, tc.wantMoved)
			}
		})
	}
}

func TestAssignPortsGivesUpWhenNoneIsFree(t *testing.T) {
	source := portSource{free: func(int) bool { return false }, pick: func() int { return 7 }}
	if _, _, err := assignPorts(nil, nil, source); err == nil || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("error is %v, want one that names etcd", err)
	}
}

func TestSystemPortsTellFreeFromTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	source := systemPorts()
	if source.free(port) {
		t.Errorf("port %d counts as free while something listens", port)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if !source.free(port) {
		t.Errorf("port %d counts as taken after its listener is gone", port)
	}
	for range 1000 {
		if port := source.pick(); port < 20000 || port > 65535 {
			t.Fatalf("picked %d", port)
		}
	}
}
