// Package cli is shared by the commands of kubectl machine: kubectl's flags for a cluster,
// completion of names, output, sources of backups, exit codes.
package cli

import (
	"errors"
	"fmt"
)

// ErrReported ends a command whose output already says what is wrong.
var ErrReported = errors.New("see the output")

// ExitCode ends a successful command with a code other than 0.
type ExitCode int

// Error implements error.
func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// UsersVariables are the environment variables that an engine needs to get providers as its user
// has configured it. They contain no credentials of infrastructure.
var UsersVariables = []string{
	"PATH", "HOME", "TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}
