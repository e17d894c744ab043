package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeCluster opens a cluster with shell scripts as components.
func fakeCluster(t *testing.T, etcd string) *Cluster {
	t.Helper()
	l := fakeLayout(t, map[Component]string{
		Etcd: etcd, APIServer: "exit 1", ControllerManager: "exit 1", Scheduler: "exit 1", KWOK: "exit 1",
	})
	c, err := New(Options{Dir: l.dir, Bin: l.bin, Timeout: 3 * time.Second, StopGrace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Purge(context.Background()); err != nil { // the test's context has ended
			t.Errorf("purging: %v", err)
		}
	})
	return c
}

func TestUpTellsWhyAComponentDidNotStart(t *testing.T) {
	cases := map[string]struct {
		script string
		want   []string
	}{
		"it exits": {
			script: "for i in $(seq 30); do echo line $i; done; echo 'disk is full' >&2; exit 3",
			want: []string{"starting etcd: it ended by itself: exit status 3", "devcluster up",
				"etcd.log:\n  line 17\n", "\n  disk is full"},
		},
		"its port was taken": {
			script: "echo 'listen tcp: address already in use'; exit 1",
			want:   []string{"run 'devcluster up' again to move it to a free one"},
		},
		"it never responds": {
			script: "echo still thinking; exec sleep 60",
			want: []string{"starting etcd: waiting until it is ready: context deadline exceeded",
				"connection refused", "  still thinking"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fakeCluster(t, tc.script)
			err := c.Up(t.Context(), nil)
			if err == nil {
				t.Fatal("it came up")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
			if strings.Contains(err.Error(), "line 16\n") {
				t.Errorf("error shows more of the log than its end:\n%v", err)
			}
			if err := c.Down(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUpRefusesAFolderOfSomethingElse(t *testing.T) {
	c := fakeCluster(t, "exit 1")
	treasure := filepath.Join(c.Dir(), "treasure")
	if err := os.WriteFile(treasure, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for verb, operation := range map[string]func() error{
		"up":    func() error { return c.Up(t.Context(), nil) },
		"purge": func() error { return c.Purge(t.Context()) },
	} {
		if err := operation(); err == nil || !strings.Contains(err.Error(), "treasure") {
			t.Errorf("%s: error is %v, want one that names the file", verb, err)
		}
	}
	if err := os.Remove(treasure); err != nil {
		t.Fatalf("the file is gone: %v", err)
	}
}

func TestOperationsOnAClusterThatWasNeverUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "never")
	c, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for verb, operation := range map[string]func() error{
		"down":  func() error { return c.Down(t.Context()) },
		"purge": func() error { return c.Purge(t.Context()) },
		"stop":  func() error { return c.Stop(t.Context(), Etcd) },
	} {
		if err := operation(); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
	for verb, operation := range map[string]func() error{
		"start":  func() error { return c.Start(t.Context(), Etcd) },
		"config": func() error { _, err := c.AdminConfig(); return err },
		"ca":     func() error { _, err := c.CAData(); return err },
		"kubeconfig": func() error {
			return c.ServiceAccountKubeconfig(t.Context(), "a", "b",
				filepath.Join(dir, "c"))
		},
	} {
		if err := operation(); err == nil {
			t.Errorf("%s succeeded", verb)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data folder was made (%v)", err)
	}
	if server := c.Server(); server != "" {
		t.Errorf("it serves %q", server)
	}
	components, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range Components() {
		if got := components[i]; got != (ComponentStatus{Component: want, State: StateStopped}) {
			t.Errorf("status is %+v, want %s stopped", got, want)
		}
	}
}

func TestStartRefusesAPortThatIsTaken(t *testing.T) {
	c := fakeCluster(t, "exit 1")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	remembered := newState()
	remembered.Ports[portKWOK] = port
	if err := remembered.save(c.layout.state()); err != nil {
		t.Fatal(err)
	}
	err = c.Start(t.Context(), KWOK)
	if want := fmt.Sprintf("another program listens on port %d", port); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want one with %q", err, want)
	}
	if err := c.Start(t.Context(), Etcd); err == nil || !strings.Contains(err.Error(), "never up") {
		t.Errorf("starting without a port: error is %v, want one that says it was never up", err)
	}
}
