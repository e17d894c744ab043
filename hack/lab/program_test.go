package lab_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/parentdeath"
)

// programVariable makes the test binary a program that starts a child. Its value is the file that the program writes
// after it stopped the child.
const programVariable = "TEST_LAB_PROGRAM"

func TestMain(m *testing.M) {
	switch {
	case parentdeath.IsParent():
		_, pid := sleeper()
		parentdeath.Print(pid)
		time.Sleep(5 * time.Minute)
	case os.Getenv(programVariable) != "":
		os.Exit(lab.Execute(context.Background(), program(os.Getenv(programVariable)), nil))
	default:
		os.Exit(m.Run())
	}
}

// sleeper starts a child that waits.
func sleeper() (stop func() error, pid int) {
	child := exec.Command("sleep", "300")
	ended, err := lab.Spawn(child)
	if err != nil {
		panic(err)
	}
	return func() error {
		err := child.Process.Signal(syscall.SIGTERM)
		<-ended
		return err
	}, child.Process.Pid
}

// program behaves like the demos: it starts something, prints, and stays.
func program(file string) *cobra.Command {
	return &cobra.Command{Use: "program", RunE: func(command *cobra.Command, _ []string) (err error) {
		ctx, cancel := lab.UntilEnd(command.Context())
		defer cancel()
		var running lab.Running
		defer func() { err = running.End(ctx, err) }()
		stop, pid := sleeper()
		running.Add(func() error {
			_, _ = os.Stdout.WriteString("stopping\n") // a write without a reader must not end it
			if filepath.Base(file) == "repeated" {
				time.Sleep(500 * time.Millisecond)
			}
			return errors.Join(stop(), os.WriteFile(file, nil, 0o600))
		})
		parentdeath.Print(pid)
		switch filepath.Base(file) {
		case "panic":
			panic("half-way")
		case "failure":
			return errors.New("half-way")
		case "stuck":
			running.Add(func() error {
				_, _ = os.Stdout.WriteString("stopping\n")
				time.Sleep(5 * time.Minute)
				return nil
			})
		}
		<-ctx.Done()
		return ctx.Err()
	}}
}

func TestAChildDiesWithAProgramThatIsKilled(t *testing.T) { parentdeath.Expect(t) }

// TestAProgramThatEndsStopsItsChildren ends a program in each way that it can observe.
func TestAProgramThatEndsStopsItsChildren(t *testing.T) {
	send := func(signal os.Signal) func(*testing.T, *os.Process, *os.File) {
		return func(t *testing.T, process *os.Process, _ *os.File) {
			t.Helper()
			if err := process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		end  func(*testing.T, *os.Process, *os.File)
		code int
	}{
		"SIGINT":  {end: send(syscall.SIGINT)},
		"SIGTERM": {end: send(syscall.SIGTERM)},
		"SIGHUP":  {end: send(syscall.SIGHUP)},
		"unread": {end: func(t *testing.T, _ *os.Process, out *os.File) {
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
		}},
		"panic":   {code: 2},
		"failure": {code: 1},
		"repeated": {end: func(t *testing.T, process *os.Process, out *os.File) {
			send(syscall.SIGHUP)(t, process, out)
			time.Sleep(200 * time.Millisecond)
			send(syscall.SIGHUP)(t, process, out)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), name)
			out, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			started := exec.Command(os.Args[0])
			started.Env, started.Stdout = append(os.Environ(), programVariable+"="+file), writer
			if err := errors.Join(started.Start(), writer.Close()); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			child, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			if tc.end != nil {
				tc.end(t, started.Process, out)
			}
			late := time.AfterFunc(10*time.Second, func() { _ = started.Process.Kill() })
			defer late.Stop()
			_ = started.Wait() // see its exit code
			if code := started.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("got %s, want exit code %d", started.ProcessState, tc.code)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("the child was not stopped in order: %v", err)
			}
			if !parentdeath.Ends(child) {
				t.Errorf("child %d still runs", child)
			}
		})
	}
}

func TestASecondInterruptEndsAProgramAtOnce(t *testing.T) {
	started := exec.Command(os.Args[0])
	started.Env = append(os.Environ(), programVariable+"="+filepath.Join(t.TempDir(), "stuck"))
	out, err := started.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := started.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := started.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadString('\n'); err != nil { // it stops the child
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = started.Wait() // the caller checks how it ended
		close(ended)
	}()
	for range 100 {
		_ = started.Process.Signal(os.Interrupt) // it may be gone
		select {
		case <-ended:
			if !parentdeath.Ends(child) {
				t.Errorf("child %d still runs", child)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Errorf("it still runs after two interrupts: %v", started.Process.Kill())
}

func TestMistakesOnTheCommandLineExitWith2(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		result    error
		want      int
	}{
		"help":                 {arguments: []string{"--help"}, result: errors.New("it ran")},
		"short help":           {arguments: []string{"-h"}, result: errors.New("it ran")},
		"nothing":              {},
		"an error":             {result: errors.New("failed"), want: 1},
		"a mistake":            {result: lab.Usage("invalid --x %q", "y"), want: 2},
		"an unknown flag":      {arguments: []string{"--unknown"}, want: 2},
		"an argument":          {arguments: []string{"unknown"}, want: 2},
		"a word of the parser": {arguments: []string{"help"}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			command := &cobra.Command{Use: "program", RunE: func(*cobra.Command, []string) error { return tc.result }}
			if got := lab.Execute(t.Context(), command, tc.arguments); got != tc.want {
				t.Errorf("got exit code %d, want %d", got, tc.want)
			}
		})
	}
}
