//go:build bench

package bench

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// callLogs is a folder with programs that say what they are called with and become the engines' CLIs. That takes some milliseconds. They are
// confined as engines are, which can write nowhere but in their run's folder, and reach the network.
type callLogs struct {
	dir      string
	listener net.Listener

	mu    sync.Mutex
	noted map[string]map[string]int // by the CLI and its command
}

func newCallLogs(t *testing.T, l *lab.Lab) *callLogs {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	logs := &callLogs{dir: t.TempDir(), listener: listener, noted: map[string]map[string]int{}}
	go logs.serve()
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	// The hosts of programs' languages lie beside Pulumi.
	hosts, err := filepath.Glob(l.Path("bin", "pulumi-language-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		if err := os.Symlink(host, filepath.Join(logs.dir, filepath.Base(host))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range contenders {
		script := fmt.Sprintf("#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/%d && echo \"%s $*\" >&3 && read -r <&3\nexec 3>&-\nexec '%s' \"$@\"\n",
			listener.Addr().(*net.TCPAddr).Port, c.cli, l.Path("bin", c.cli))
		if err := os.WriteFile(logs.program(c.cli), []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	return logs
}

// serve notes calls until the listener is closed. A program goes on once its call is noted.
func (l *callLogs) serve() {
	for {
		calls, err := l.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer calls.Close()
			line, err := bufio.NewReader(calls).ReadString('\n')
			if err != nil {
				return
			}
			cli, arguments, _ := strings.Cut(strings.TrimSpace(line), " ")
			l.note(cli, commandOf(arguments))
			_, _ = calls.Write([]byte("\n")) // it may be gone
		}()
	}
}

func (l *callLogs) note(cli, command string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noted[cli] == nil {
		l.noted[cli] = map[string]int{}
	}
	l.noted[cli][command]++
}

func (l *callLogs) program(cli string) string { return filepath.Join(l.dir, cli) }

func (l *callLogs) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.noted)
}

// calls returns how often each CLI was called, by the command.
func (l *callLogs) calls() map[string]map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]map[string]int{}
	for cli, commands := range l.noted {
		found[cli] = maps.Clone(commands)
	}
	return found
}

// commandOf returns the first argument that is neither a flag nor the value of the one that has it apart.
func commandOf(line string) string {
	var value bool
	for argument := range strings.FieldsSeq(line) {
		if !value && !strings.HasPrefix(argument, "-") {
			return argument
		}
		value = argument == "--event-log"
	}
	return line
}

// series adds up the samples of a series that have labels.
func series(metrics, name string, labels map[string]string) float64 {
	var sum float64
	for line := range strings.Lines(metrics) {
		described, ok := strings.CutPrefix(line, name+"{")
		if !ok {
			continue
		}
		found := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(described, -1) {
			found[pair[1]] = pair[2]
		}
		matches := true
		for key, value := range labels {
			matches = matches && found[key] == value
		}
		fields := strings.Fields(line)
		if value, err := strconv.ParseFloat(fields[len(fields)-1], 64); err == nil && matches {
			sum += value
		}
	}
	return sum
}
