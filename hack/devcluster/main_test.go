package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
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
		"help of a command":  {args: []string{"down", "--help"}, wantStderr: "-purge"},
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
			code := exitCode(run(t.Context(), tc.args, &stdout, &stderr), &stderr)
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

func TestEveryCommandIsInTheHelp(t *testing.T) {
	for name := range commands {
		if !strings.Contains(usage, "\n  "+name+" ") {
			t.Errorf("the help lacks %s", name)
		}
	}
	for _, component := range cluster.Components() {
		if !strings.Contains(usage, string(component)) {
			t.Errorf("the help lacks %s", component)
		}
	}
}

func TestFlagsMayStandAnywhere(t *testing.T) {
	for _, args := range [][]string{{"--dir", "d", "etcd"}, {"etcd", "--dir", "d"}, {"etcd", "--dir=d"}} {
		call := &invocation{}
		operands, err := parse(call.flags("stop", commands["stop"], &bytes.Buffer{}), args)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"etcd"}, operands); diff != "" || call.options.Dir != "d" {
			t.Errorf("%q gives operands %q and folder %q", args, operands, call.options.Dir)
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

func TestExitCode(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int
	}{{nil, 0}, {flag.ErrHelp, 0}, {context.Canceled, 1}, {usageError{errors.New("wrong")}, 2}} {
		if got := exitCode(tc.err, &bytes.Buffer{}); got != tc.want {
			t.Errorf("%v gives %d, want %d", tc.err, got, tc.want)
		}
	}
}
