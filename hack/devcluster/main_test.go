package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

func TestCommandLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dev")
	empty := t.TempDir()
	cases := map[string]struct {
		args       []string
		wantCode   int
		wantStdout string
		wantStderr string
	}{
		"no command":         {wantCode: 2, wantStderr: "no command given"},
		"an unknown command": {args: []string{"boot"}, wantCode: 2, wantStderr: `no command "boot"`},
		"help":               {args: []string{"--help"}, wantStdout: "Commands:"},
		"help of a command":  {args: []string{"down", "--help"}, wantStdout: "--purge"},
		"an unknown flag":    {args: []string{"up", "--fast"}, wantCode: 2, wantStderr: "-fast"},
		"stop without a component": {
			args: []string{"stop"}, wantCode: 2, wantStderr: "stop takes 1 operands",
		},
		"stop of an unknown component": {
			args: []string{"stop", "kubelet"}, wantCode: 2, wantStderr: "kube-apiserver",
		},
		"an operand too many":                 {args: []string{"down", "now"}, wantCode: 2, wantStderr: `"now"`},
		"stop of a cluster that was never up": {args: []string{"stop", "etcd", "--dir", dir}, wantStdout: "stopped"},
		"start of a cluster that was never up": {
			args: []string{"start", "--dir", dir, "etcd"}, wantCode: 1, wantStderr: "never up",
		},
		"up without binaries": {
			args: []string{"up", "--dir", dir, "--bin", empty}, wantCode: 1, wantStderr: "make tools",
		},
		"down of a cluster that was never up": {args: []string{"down", "--dir", dir}, wantStdout: "its data stays"},
		"purge of one that was never up": {
			args: []string{"down", "--purge", "--dir", dir}, wantStdout: "removed",
		},
		"status of one that was never up": {
			args: []string{"status", "--dir", dir}, wantCode: 1, wantStdout: "Stopped",
			wantStderr: "not every component runs",
		},
		"kubeconfig without an account": {
			args: []string{"kubeconfig", "--output", "f"}, wantCode: 2, wantStderr: "NAMESPACE/NAME",
		},
		"kubeconfig without a namespace": {
			args: []string{"kubeconfig", "--service-account", "operator", "--output", "f"}, wantCode: 2,
			wantStderr: "NAMESPACE/NAME",
		},
		"kubeconfig without a file": {
			args: []string{"kubeconfig", "--service-account", "a/b"}, wantCode: 2, wantStderr: "--output",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			command := newCommand()
			command.SetOut(&stdout)
			command.SetErr(&stderr)
			code := lab.Execute(t.Context(), command, tc.args)
			if code != tc.wantCode {
				t.Errorf("exit status is %d, want %d", code, tc.wantCode)
			}
			if !strings.Contains(stdout.String(), tc.wantStdout) || !strings.Contains(stderr.String(), tc.wantStderr) {
				t.Errorf("want %q on stdout and %q on stderr, got:\n%s\n%s", tc.wantStdout,
					tc.wantStderr, &stdout, &stderr)
			}
		})
	}
}

func TestEveryComponentIsInTheHelp(t *testing.T) {
	for _, component := range cluster.Components() {
		if !strings.Contains(newCommand().Long, string(component)) {
			t.Errorf("the help lacks %s", component)
		}
	}
}

func TestStatusTable(t *testing.T) {
	var stdout bytes.Buffer
	err := printStatus(&stdout, []cluster.ComponentStatus{
		{Component: cluster.Etcd, PID: 17, Port: 20001, State: cluster.StateRunning},
		{Component: cluster.APIServer, PID: 18, Port: 20002, State: cluster.StateNotReady, Detail: "no response"},
		{Component: cluster.KWOK, State: cluster.StateStopped},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "COMPONENT       PID  PORT   STATE\n" +
		"etcd            17   20001  Running\n" +
		"kube-apiserver  18   20002  NotReady: no response\n" +
		"kwok            -    -      Stopped\n"
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("table differs (-want +got):\n%s", diff)
	}
}
