package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// available means that there is a launcher for this system.
const available = true

// niceness is that of engines and their providers. They wait most of their time.
const niceness = 10

// ownProgram is this program, even if its file has been replaced.
const ownProgram = "/proc/self/exe"

// exitCode is the exit code of a failed launcher. It is that of an engine that failed, not of one
// that died and may have changed something.
const exitCode = 1

// A launcher runs before most packages are initialized, which takes more CPU time than everything
// it does. It therefore works in every program that imports this package.
func init() {
	text, launches := os.LookupEnv(Variable)
	if !launches {
		return
	}
	fmt.Fprintln(os.Stderr, "starting the engine in its sandbox:", launch(text))
	os.Exit(exitCode)
}

// launch confines this process and becomes the order's program. It returns only on failure.
func launch(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("reading %s: %w", Variable, err)
	}
	// The following applies to this thread only, and exec replaces all others.
	runtime.LockOSThread()
	// Many engines that start at once would keep the manager from its lease, and the API server from
	// its answers where it is on the same machine.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness) // it fails where the priority is lower already
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	if err := setMark(o.Mark); err != nil && o.ABI > 0 { // without Landlock, the mark would prove nothing
		return err
	}
	if o.ABI > 0 {
		if err := restrict(o); err != nil {
			return err
		}
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	environment, err := engineEnvironment(os.Environ())
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", o.Program, unix.Exec(o.Program, append([]string{o.Program}, os.Args[1:]...), environment))
}

// dropCapabilities drops all capabilities. A program of root does not get any back, since
// no_new_privs is set.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// reattachVariable tells an engine where warm providers are.
const reattachVariable = "TF_REATTACH_PROVIDERS"

// engineEnvironment returns the program's environment. An engine sends a signal to check whether a
// provider that it did not start is alive, which the sandbox blocks. So the engine gets its own
// process ID instead, which is already that of this process. If a provider dies, its calls fail
// anyway.
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

// Hide protects the memory and environment of this process from other processes of its user, such
// as unconfined engines. It also disables core dumps.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hiding this process from engines: %w", err)
	}
	return nil
}
