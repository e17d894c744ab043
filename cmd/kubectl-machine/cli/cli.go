// Package cli is what the commands of kubectl machine share: kubectl's flags for a cluster, the completion of names, the output, what a backup is
// made of, exit codes.
package cli

import (
	"errors"
	"fmt"
)

// ErrReported ends a command whose output reports already what is wrong.
var ErrReported = errors.New("see the output")

// ExitCode ends a command that succeeded with a code other than 0.
type ExitCode int

// Error implements error.
func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// UsersVariables are what an engine needs to get providers as its user has set it up. Credentials of infrastructure are not among them.
var UsersVariables = []string{
	"PATH", "HOME", "TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}
