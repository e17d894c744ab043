package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Script is the file that [Manager.WriteScript] writes.
func (l *Lab) Script() string { return filepath.Join(l.dir, "manager.sh") }

// replacedFile is the file that the script writes before it stops the manager.
func (l *Lab) replacedFile() string { return filepath.Join(l.dir, "manager.replaced") }

// replaced reports whether the script has replaced the manager.
func (m *Manager) replaced() bool {
	_, err := os.Stat(m.lab.replacedFile())
	return err == nil
}

// WriteScript writes the shell script behind 'make run'. It stops this manager and runs its program, as rebuilt since,
// in the foreground with the same arguments and environment. With DEBUG set, it runs under Delve, which listens on
// 127.0.0.1:2345, and without a lease, which it would lose at a breakpoint.
func (m *Manager) WriteScript() error {
	command := m.command
	program, err := filepath.EvalSymlinks(command.Path) // the path that the kernel reports
	if err != nil {
		return err
	}
	var arguments, environment strings.Builder
	for _, argument := range command.Args[1:] {
		arguments.WriteString(" " + quoted(argument))
	}
	for _, variable := range command.Env {
		environment.WriteString(" " + quoted(variable))
	}
	if err := os.Remove(m.lab.replacedFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	script := fmt.Sprintf(`#!/bin/sh
if [ -n "$DEBUG" ] && ! dlv=$(command -v dlv); then
  echo 'run: dlv is not on PATH; install it: go install github.com/go-delve/delve/cmd/dlv@latest' >&2
  exit 1
fi
manager() { case $(readlink /proc/%[1]d/exe) in %[4]s | %[4]s' (deleted)') ;; *) false ;; esac; }
if manager; then { : >%[5]s && kill %[1]d; } || exit; fi
while manager; do sleep 0.1; done
set --%[2]s
if [ -n "$DEBUG" ]; then
  set -- --headless --accept-multiclient --continue --listen=127.0.0.1:2345 %[4]s -- "$@" --leader-elect=false
  exec env -i%[3]s "$dlv" exec "$@"
fi
exec env -i%[3]s %[4]s "$@"
`, m.PID(), arguments.String(), environment.String(), quoted(program),
		quoted(m.lab.replacedFile()))
	return os.WriteFile(m.lab.Script(), []byte(script), 0o700)
}

// quoted quotes a shell word.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
