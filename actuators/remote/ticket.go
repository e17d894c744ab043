package remote

import (
	"fmt"
	"os"
	"path/filepath"
)

// Ticket is what a process needs to connect to its run. It prints without the password.
type Ticket struct {
	// Address is the manager's host and port; Certificate identifies the manager, in PEM.
	Address     string
	Certificate []byte
	// Run and Password grant access to this run only.
	Run, Password string
}

// The names of a ticket's files.
const (
	addressFile     = "address"
	certificateFile = "certificate.pem"
	runFile         = "run"
	passwordFile    = "password"
)

// Files returns the ticket as files of a folder, such as the data of a Secret.
func (t Ticket) Files() map[string][]byte {
	return map[string][]byte{
		addressFile: []byte(t.Address), certificateFile: t.Certificate, runFile: []byte(t.Run),
		passwordFile: []byte(t.Password),
	}
}

// ReadTicket reads a ticket from its folder.
func ReadTicket(dir string) (Ticket, error) {
	var t Ticket
	var address, run, password []byte
	for name, into := range map[string]*[]byte{addressFile: &address, certificateFile: &t.Certificate, runFile: &run,
		passwordFile: &password} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return Ticket{}, fmt.Errorf("reading the run's ticket: %w; mount the Secret of the run's Job at %s", err, dir)
		}
		*into = content
	}
	t.Address, t.Run, t.Password = string(address), string(run), string(password)
	return t, nil
}

// String returns the run.
func (t Ticket) String() string { return "run " + t.Run }

// GoString returns the run.
func (t Ticket) GoString() string { return "remote.Ticket(" + t.Run + ")" }
