package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// available says that there is a launcher for this system.
const available = true

// ownProgram is this program, even when another has taken its file's place.
const ownProgram = "/proc/self/exe"

// exitCode is that of a launcher that fails: that of an engine which fails, and not of one that died and may have changed something.
const exitCode = 1

// A launcher begins before most packages of its program are initialised, because that takes more CPU time than all that it does. So it works in
// every program that has this package.
func init() {
	text, launches := os.LookupEnv(Variable)
	if !launches {
		return
	}
	fmt.Fprintln(os.Stderr, "starting the engine in its sandbox:", launch(text))
	os.Exit(exitCode)
}

// launch confines this process and becomes the program of the order. It returns where that fails.
func launch(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("reading %s: %w", Variable, err)
	}
	// What follows is of this thread alone, and its program is the only thread that is left.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if o.ABI > 0 {
		if err := restrict(o); err != nil {
			return err
		}
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	environment, err := engineEnvironment(os.Environ())
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", o.Program, unix.Exec(o.Program, append([]string{o.Program}, os.Args[1:]...), environment))
}

// dropCapabilities gives up all capabilities. A program of root's gets none either: without new privileges it has no more than this.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// reattachVariable is where an engine finds providers that run.
const reattachVariable = "TF_REATTACH_PROVIDERS"

// engineEnvironment is what the program gets of a launcher's environment. An engine asks by a signal whether a provider that it did not start
// lives, and the sandbox stops that signal; so it is given its own id, which this process has already. The end of a provider ends its calls.
func engineEnvironment(own []string) ([]string, error) {
	var environment []string
	for _, setting := range own {
		name, value, _ := strings.Cut(setting, "=")
		switch name {
		case Variable:
		case reattachVariable:
			reattach, err := withOwnID(value)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", reattachVariable, err)
			}
			environment = append(environment, name+"="+reattach)
		default:
			environment = append(environment, setting)
		}
	}
	return environment, nil
}

func withOwnID(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	var providers map[string]map[string]any
	if err := json.Unmarshal([]byte(value), &providers); err != nil {
		return "", err
	}
	for _, one := range providers {
		one["Pid"] = os.Getpid()
	}
	raw, err := json.Marshal(providers)
	return string(raw), err
}

// Hide keeps the memory and the environment of this process from other processes of its user, which may be engines that nothing else
// confines. It has no core dumps from then on.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hiding this process from engines: %w", err)
	}
	return nil
}
