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
		wantMoved  []Component
	}{
		"a new cluster gets six ports": {
			want: map[portName]int{
				portEtcd: 1001, portEtcdPeer: 1002, portAPIServer: 1003, portControllerManager: 1004,
				portScheduler: 1005, portKWOK: 1006,
			},
			wantMoved: Components(),
		},
		"free ports are kept": {
			remembered: remembered(), want: remembered(),
		},
		"a port that its own component holds is kept": {
			remembered: remembered(), running: map[Component]bool{APIServer: true}, taken: []int{3}, want: remembered(),
		},
		"a port that another program holds is replaced": {
			remembered: remembered(), taken: []int{3, 1001}, want: with(portAPIServer, 1002),
			wantMoved: []Component{APIServer},
		},
		"a picked port is none of those that are kept": {
			remembered: with(portKWOK, 1001), taken: []int{2}, want: map[portName]int{
				portEtcd: 1, portEtcdPeer: 1002, portAPIServer: 3, portControllerManager: 4,
				portScheduler: 5, portKWOK: 1001,
			}, wantMoved: []Component{Etcd},
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
			if diff := cmp.Diff(tc.wantMoved, moved); diff != "" {
				t.Errorf("moved components differ (-want +got):\n%s", diff)
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

func TestMustRestart(t *testing.T) {
	cases := map[string]struct {
		moved        []Component
		certificates bool
		want         map[Component]bool
	}{
		"nothing has changed": {want: map[Component]bool{}},
		"new certificates are for all": {
			certificates: true, want: map[Component]bool{
				Etcd: true, APIServer: true, ControllerManager: true, Scheduler: true, KWOK: true,
			},
		},
		"etcd moved, its client follows": {moved: []Component{Etcd}, want: map[Component]bool{APIServer: true}},
		"the API moved, its clients follow": {
			moved: []Component{APIServer},
			want:  map[Component]bool{ControllerManager: true, Scheduler: true, KWOK: true},
		},
		"nobody asks the leaves": {
			moved: []Component{ControllerManager, Scheduler, KWOK}, want: map[Component]bool{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mustRestart(tc.moved, tc.certificates)); diff != "" {
				t.Errorf("restarts differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseLowestEphemeral(t *testing.T) {
	for line, want := range map[string]int{"32768\t60999\n": 32768, "": 0, "many few": 0} {
		if got := parseLowestEphemeral(line); got != want {
			t.Errorf("%q gives %d, want %d", line, got, want)
		}
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
